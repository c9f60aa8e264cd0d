"""The project as an application: it has system checks and nothing else."""

from django.apps import AppConfig


class RagsiteConfig(AppConfig):
    """Registers the checks of the deployment."""

    name = "ragsite"

    def ready(self) -> None:
        """Import what registers itself by being imported."""
        from ragsite import checks  # noqa: F401 (registers the checks)
