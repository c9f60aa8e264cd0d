"""Routing of the mirror's models to the database alias `index`."""

from typing import Any, Final

from django.db.models import Model

from ingest_readonly.errors import ReadOnlyIndex

INDEX: Final = "index"
_APP: Final = "ingest_readonly"


class IndexRouter:
    """Reads of the mirror go to `index`; writes are refused; no migration ever runs there."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return INDEX if model._meta.app_label == _APP else None

    def db_for_write(self, model: type[Model], **hints: Any) -> str | None:
        if model._meta.app_label == _APP:
            raise ReadOnlyIndex
        return None

    def allow_relation(self, obj1: Model, obj2: Model, **hints: Any) -> bool | None:
        apps = {obj1._meta.app_label, obj2._meta.app_label}
        return None if _APP not in apps else apps == {_APP}

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        if db == INDEX or app_label == _APP:
            return False
        return None
