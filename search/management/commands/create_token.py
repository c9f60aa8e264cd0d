"""`manage.py create_token USERNAME`: a token for the API, shown once."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from knox.models import get_token_model


class Command(BaseCommand):
    help = "Creates an API token for a user and prints it. It is stored hashed and not shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--days", type=int, help="Days until it expires (TOKEN_TTL_HOURS).")

    def handle(self, *args: Any, username: str, days: int | None, **options: Any) -> None:
        if days is not None and days < 1:
            raise CommandError("--days must be at least 1.")
        users = get_user_model()._default_manager
        user = users.filter(**{get_user_model().USERNAME_FIELD: username}, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user “{username}”.")
        lifetime = {} if days is None else {"expiry": timedelta(days=days)}
        record, token = get_token_model().objects.create(user, **lifetime)
        # The token alone on standard output, so that a script can take it.
        self.stderr.write(f"Expires {record.expiry:%Y-%m-%d %H:%M} UTC.")
        self.stdout.write(token)
