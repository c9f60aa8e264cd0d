"""Django's entry to the search."""

from django.apps import AppConfig


class SearchConfig(AppConfig):
    """Makes the API's description and the system checks known."""

    name = "search"
    verbose_name = "Search"

    def ready(self) -> None:
        """Import what registers itself by being imported."""
        # drf-spectacular finds its extensions by their being imported.
        from search import checks, schema  # noqa: F401
