"""Django's entry to the owner's side: commands only, no models, no URLs."""

from django.apps import AppConfig


class IndexerConfig(AppConfig):
    name = "indexer"
    verbose_name = "Indexer"
