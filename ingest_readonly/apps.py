"""Django's entry to the mirror."""

from django.apps import AppConfig


class IngestReadonlyConfig(AppConfig):
    """The application."""

    name = "ingest_readonly"
    verbose_name = "Index (read only)"

    def ready(self) -> None:
        from ingest_readonly import checks  # noqa: F401 (registers the checks)
