"""What the search keeps in Django's own database: a permission, no table."""

from django.db import models


class Inspect(models.Model):
    """Gives the inspection page its permission and its place in the admin; has no table."""

    class Meta:
        managed = False
        default_permissions = ()
        permissions = [("inspect_search", "Can inspect searches")]
        verbose_name = "inspection"
        verbose_name_plural = "inspect a search"

    def __str__(self) -> str:
        return "inspection"
