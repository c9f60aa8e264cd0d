"""`manage.py search "…"`: one search or scan, as a table or as the REST answer."""

import json
from argparse import ArgumentParser, BooleanOptionalAction
from typing import IO, Any, Final, cast

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from search import services
from search.errors import InvalidRequest, SearchError
from search.serializers import (
    SearchParameters,
    ValidationError,
    messages_by_field,
    to_request,
    to_response,
)
from search.serializers.fields import Flag
from search.serializers.wire import from_texts
from search.table import write
from search.types import SearchRequest

WIDTH_OF_A_PIPE: Final = 160


class Command(BaseCommand):
    help = "Search the index and print what the REST API answers; without a query, scan it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take every parameter of the REST API, by its name, as an option."""
        for name, field in SearchParameters().fields.items():
            text = str(field.help_text).replace("%", "%%")
            if name == "query":
                parser.add_argument("query", nargs="?", default="", help=text)
                continue
            option = f"--{name.replace('_', '-')}"
            if isinstance(field, Flag):
                parser.add_argument(option, action=BooleanOptionalAction, default=None, help=text)
            else:
                # Text, as in a query string: one place decides what is a number or a time.
                parser.add_argument(option, action="append", metavar="VALUE", help=text)
        parser.add_argument("--json", action="store_true", help="Print the answer as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            answer = services.answer(request=_request(options))
        except ValidationError as error:
            lines = [
                f"{name}: {message}"
                for name, messages in messages_by_field(error).items()
                for message in messages
            ]
            raise CommandError("\n".join(lines)) from error
        except InvalidRequest as error:
            raise CommandError(f"{error.field}: {error}") from error
        except SearchError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(to_response(answer), ensure_ascii=False, indent=2))
        else:
            write(
                Console(
                    file=cast(IO[str], self.stdout),
                    highlight=False,
                    # A pipe has no width; a table cut to 80 columns is of no use in a file.
                    width=None if self.stdout.isatty() else WIDTH_OF_A_PIPE,
                ),
                answer,
            )


def _request(options: dict[str, Any]) -> SearchRequest:
    """Return the request of the command line; raises ValidationError."""
    known = SearchParameters().fields
    given = {name: value for name, value in options.items() if name in known and value is not None}
    texts = {name: value for name, value in given.items() if isinstance(value, list)}
    others = {name: value for name, value in given.items() if name not in texts}
    return to_request({**others, **from_texts(texts)})
