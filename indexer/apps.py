"""Django's entry to the owner's side: commands only, no models, no URLs."""

from django.apps import AppConfig


class IndexerConfig(AppConfig):
    """The application."""

    name = "indexer"
    verbose_name = "Indexer"
