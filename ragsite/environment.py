"""Reading the environment: every mistake at once, each with its remedy."""

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from django.core.exceptions import ImproperlyConfigured
from environs import Env, EnvValidationError, validate

from search.conf import SETTINGS, Setting

PRODUCTION: Final = "production"
DEVELOPMENT: Final = "development"

REQUIRED_IN_PRODUCTION: Final = (
    "SECRET_KEY",
    "DEBUG",
    "ALLOWED_HOSTS",
    "DATABASE_URL",
    "INDEX_DATABASE_URL",
)
REMEDY: Final = "For a trial on your own machine set ENVIRONMENT=development, see .env.example."

_SECRET_KEY_BYTES: Final = 64


class _Reader(Env):
    """Takes a variable that is set to nothing, as compose files do, for one that is unset."""

    def _get_value(self, env_key: str, default: Any) -> Any:
        return super()._get_value(env_key, default) or default


class Environment:
    """The environment variables of this process, by type.

    Mistakes are collected, not raised: the values read before `seal` may be None where they are
    missing or wrong.
    """

    def __init__(self) -> None:
        self.read = _Reader(eager=False)
        self._mistakes: dict[str, str] = {}
        self.name = self.read.str(
            "ENVIRONMENT", PRODUCTION, validate=validate.OneOf([PRODUCTION, DEVELOPMENT])
        )
        self.is_development = self.name == DEVELOPMENT
        if not self.is_development:
            self._require(REQUIRED_IN_PRODUCTION)

    def _require(self, names: tuple[str, ...]) -> None:
        self._mistakes |= {name: "is not set" for name in names if not os.environ.get(name)}

    def positive(self, name: str, default: int) -> int:
        """Return a whole number of at least 1."""
        return self.read.int(name, default, validate=validate.Range(min=1))

    def rate(self, name: str, default: str) -> str:
        """Return a throttle rate as REST framework writes it: `120/min`."""
        pattern = validate.Regexp(r"^[1-9][0-9]*/(s|sec|min|hour|day)$", error="not like 120/min")
        return self.read.str(name, default, validate=pattern)

    def search_settings(self) -> dict[str, Any]:
        """Return the value of each setting of `search.conf`, by the type of its default."""
        readers: dict[type, Callable[..., Any]] = {
            bool: self.read.bool,
            int: self.read.int,
            float: self.read.float,
            str: self.read.str,
        }
        self._mistakes |= {
            name: "is no setting of the search; see docs/settings.md"
            for name in os.environ
            if name.startswith("SEARCH_") and name not in {s.name for s in SETTINGS}
        }
        return {
            s.name: readers[type(s.default)](s.name, s.default, validate=_bounds(s))
            for s in SETTINGS
        }

    def database(self, name: str, url: str, build: Callable[[str], dict[str, Any]]) -> Any:
        """Return `build(url)`; a ValueError becomes a mistake of the variable `name`."""
        try:
            return build(url)
        except ValueError as error:
            # The message of a parser may quote the URL, and with it the password.
            hint = str(error) if str(error).startswith("must") else "is not a valid database URL"
            self._mistakes.setdefault(name, hint)
        return {}

    def seal(self) -> None:
        """Raise ImproperlyConfigured naming every variable that is missing or wrong."""
        try:
            self.read.seal()
        except EnvValidationError as error:
            by_name = cast(Mapping[str, list[str]], error.error_messages)
            for name, messages in by_name.items():
                self._mistakes.setdefault(name, " ".join(messages))
        if self._mistakes:
            lines = "\n".join(f"  {name}: {text}" for name, text in self._mistakes.items())
            raise ImproperlyConfigured(f"Environment variables:\n{lines}\n{REMEDY}")


def _bounds(setting: Setting) -> list[Any]:
    """Return the validators of a setting of the search."""
    checks: list[Any] = []
    if setting.least is not None or setting.most is not None:
        checks.append(validate.Range(min=setting.least, max=setting.most))
    if setting.choices:
        checks.append(validate.OneOf(setting.choices))
    return checks


def development_secret_key(path: Path) -> str:
    """Return the key kept in the file `path`, which is made on first use, readable by its owner."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="ascii")
    key = secrets.token_urlsafe(_SECRET_KEY_BYTES)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key)
    return key
