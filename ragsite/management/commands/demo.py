"""manage.py demo: from an empty checkout to a working search on 127.0.0.1."""

import os
import secrets
import shlex
import socket
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from knox.models import AuthToken

HOST: Final = "127.0.0.1"
SOME_LINES_SKIPPED: Final = 3  # exit code of index_load
USERNAME: Final = "demo"
# Shows folds and what does not fold: ten rows of it are four things.
EXAMPLE: Final = "when did delegation to a subagent become mandatory"
EXAMPLE_OF_ANY: Final = "what was decided and when"


class Command(BaseCommand):
    help = "Load a snapshot, create a demo account and serve the search on 127.0.0.1."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--snapshot", type=Path, help="The snapshot to load.")
        source.add_argument("--repo", type=Path, help="A git clone to index instead.")
        parser.add_argument("--port", type=int, default=8000, help="Port to serve on.")
        parser.add_argument(
            "--no-serve", action="store_true", help="Prepare everything, then stop."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEBUG:
            raise CommandError(
                "The demo makes an administrator with a printed password, so it runs with DEBUG "
                "only: set ENVIRONMENT=development."
            )
        if not os.environ.get("INDEX_OWNER_URL"):
            raise CommandError("The demo writes the index: set INDEX_OWNER_URL too.")
        if not options["no_serve"]:
            _check_port(options["port"])
        call_command("migrate", verbosity=0)
        if options["repo"] is not None:
            self._index(options["repo"])
        else:
            self._load(options["snapshot"])
        password, token = self._account()
        example = EXAMPLE if options["repo"] is None else EXAMPLE_OF_ANY
        self._say(options["port"], password, token, example)
        self.stdout.flush()  # what was said must be read while the server runs, also in a file
        if not options["no_serve"]:
            # Without the reloader: it would start everything twice.
            call_command("runserver", f"{HOST}:{options['port']}", use_reloader=False)

    def _load(self, snapshot: Path) -> None:
        try:
            # Another snapshot than last time takes its place: two sources in one demo would
            # answer each other's questions.
            call_command(
                "index_load",
                str(snapshot),
                replace=True,
                stdout=self.stdout,
                stderr=self.stderr,
            )
        except CommandError as error:
            if error.returncode != SOME_LINES_SKIPPED:  # the others can be searched
                raise
            self.stderr.write(str(error))

    def _index(self, clone: Path) -> None:
        """Index a clone; what another demo left in the index is removed first."""
        call_command("index_git", str(clone), replace=True, stdout=self.stdout, stderr=self.stderr)

    def _account(self) -> tuple[str, str]:
        """Create or renew the demo administrator; return its new password and token."""
        password = secrets.token_urlsafe(9)
        user, _ = get_user_model().objects.get_or_create(
            username=USERNAME, defaults={"is_staff": True, "is_superuser": True}
        )
        user.set_password(password)
        user.save()
        AuthToken.objects.filter(user=user).delete()
        _, token = AuthToken.objects.create(user=user)
        return password, token

    def _say(self, port: int, password: str, token: str, example: str) -> None:
        site = f"http://{HOST}:{port}"
        search = f"{site}/api/search?query={quote(example)}&top_k=5"
        curl = shlex.join(["curl", "-s", "-H", f"Authorization: Token {token}", search])
        self.stdout.write(
            f"""
Inspection page   {site}/admin/search/inspect/?query={quote(example)}
Admin             {site}/admin/   user {USERNAME}, password {password}
API documentation {site}/api/docs
One search        {curl}

Stop with Ctrl-C.
"""
        )


def _check_port(port: int) -> None:
    """Raise CommandError unless the port is free: before anything of a running demo is touched."""
    try:
        with socket.create_server((HOST, port), reuse_port=False):
            pass
    except (OSError, OverflowError) as error:
        raise CommandError(
            f"Port {port} cannot be used ({error}). Name another: make demo PORT=8001"
        ) from error
