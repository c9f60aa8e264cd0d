"""Settings: what production demands, what development is given, and what leaks to nobody."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory, override_settings

from ragsite import databases
from ragsite.environment import REQUIRED_IN_PRODUCTION, Environment, development_secret_key
from ragsite.logs import RequestMiddleware, client_address
from search.conf import SETTINGS

COMPLETE = {
    "ENVIRONMENT": "production",
    "SECRET_KEY": "k" * 30 + "0123456789abcdefghijKLMNOPQRST",
    "DEBUG": "false",
    "ALLOWED_HOSTS": "search.example.com",
    "DATABASE_URL": "postgresql://app:secret@db.example.com/app",
    "INDEX_DATABASE_URL": "postgresql://rag_reader:secret@db.example.com/index",
}
IMPORT = "from django.conf import settings as s; "


def run_settings(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Import the settings in a process of its own, whose environment is only `variables`."""
    environment = {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "ragsite.settings",
        # Set, so that a developer's `.env` does not decide.
        **dict.fromkeys(REQUIRED_IN_PRODUCTION, ""),
        **variables,
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=databases.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )


def test_production_names_everything_that_is_missing_at_once() -> None:
    done = run_settings(IMPORT + "s.DEBUG", ENVIRONMENT="production")
    assert done.returncode != 0
    for name in REQUIRED_IN_PRODUCTION:
        assert f"{name}: is not set" in done.stderr
    assert "ENVIRONMENT=development" in done.stderr


def test_production_is_closed_and_the_index_read_only() -> None:
    code = IMPORT + (
        "assert s.SESSION_COOKIE_SECURE and s.CSRF_COOKIE_SECURE and s.SECURE_SSL_REDIRECT;"
        "assert s.SECURE_HSTS_SECONDS and s.SECURE_PROXY_SSL_HEADER is None;"
        "assert 'Manifest' in s.STORAGES['staticfiles']['BACKEND'];"
        "o = s.DATABASES['index']['OPTIONS'];"
        "assert o['isolation_level'].name == 'REPEATABLE_READ', o;"
        "assert 'default_transaction_read_only=on' in o['options'], o;"
        "assert s.DATABASES['default']['OPTIONS']['pool']['max_size'] == 8;"
        "assert not hasattr(s, 'INDEX_OWNER_URL')"
    )
    done = run_settings(code, **COMPLETE, INDEX_OWNER_URL="postgresql://rag_owner@db/index")
    assert done.returncode == 0, done.stderr


def test_deployment_check_is_clean() -> None:
    code = (
        "from django.core.management import execute_from_command_line as run;"
        "run(['manage.py', 'check', '--deploy', '--fail-level', 'WARNING'])"
    )
    done = run_settings(code, **COMPLETE)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("ENVIRONMENT", "staging", "Must be one of"),
        ("DEBUG", "perhaps", "Not a valid boolean"),
        ("DB_POOL_SIZE", "0", "greater than or equal to 1"),
        ("TOKEN_TTL_HOURS", "-1", "greater than or equal to 1"),
        ("THROTTLE_USER", "many", "not like 120/min"),
        ("PROXY_COUNT", "one", "Not a valid integer"),
        ("SEARCH_WINDOW", "wide", "Not a valid integer"),
        ("DATABASE_URL", "sqlite:///x", "must be a postgresql:// URL"),
        ("INDEX_DATABASE_URL", "postgresql://u:secret@h:port/db", "not a valid database URL"),
        ("INDEX_DATABASE_URL", "postgresql://u:secret@h", "must name a database"),
    ],
)
def test_a_wrong_value_is_named(name: str, value: str, text: str) -> None:
    done = run_settings(IMPORT + "s.DEBUG", **{**COMPLETE, name: value})
    message = done.stderr.rpartition("ImproperlyConfigured")[2]
    assert f"{name}: " in message
    assert text in message
    assert "secret" not in done.stderr


def test_each_setting_of_the_search_is_a_variable() -> None:
    code = IMPORT + "print(s.SEARCH_WINDOW, s.SEARCH_TITLE_RANKER, s.SEARCH_LEXICAL_ENGINE)"
    chosen = {
        "SEARCH_WINDOW": "7",
        "SEARCH_TITLE_RANKER": "false",
        "SEARCH_LEXICAL_ENGINE": "core",
    }
    assert run_settings(code, **COMPLETE, **chosen).stdout.split() == ["7", "False", "core"]


def test_settings_of_the_search_have_the_type_of_their_default() -> None:
    assert {s.name: type(getattr(settings, s.name)) for s in SETTINGS} == {
        s.name: type(s.default) for s in SETTINGS
    }


def test_importing_the_settings_starts_no_server() -> None:
    code = IMPORT + "s.DEBUG; import sys; print('ragsite.embedded' in sys.modules)"
    done = run_settings(code, ENVIRONMENT="development", SECRET_KEY="only-here")
    assert done.stdout.strip() == "False", done.stderr


def test_mistakes_of_several_variables_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVIRONMENT", "development")
    monkeypatch.setenv("ONE", "x")
    monkeypatch.setenv("TWO", "y")
    environment = Environment()
    environment.positive("ONE", 1)
    environment.positive("TWO", 1)
    with pytest.raises(ImproperlyConfigured, match=r"(?s)ONE.*TWO"):
        environment.seal()


def test_the_development_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "var" / "secret_key"
    key = development_secret_key(path)
    assert len(key) >= 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert development_secret_key(path) == key


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        ([], False),
        (["help"], False),
        (["--version"], False),
        (["migrate", "--help"], False),
        (["check"], False),
        (["check", "--deploy"], False),
        (["check", "--database", "index"], True),
        (["check", "--database=index"], True),
        (["spectacular", "--validate"], False),
        (["collectstatic", "--noinput"], False),
        (["migrate"], True),
        (["runserver"], True),
    ],
)
def test_the_embedded_server_is_for_commands_that_need_it(
    arguments: list[str], needed: bool
) -> None:
    assert databases._needs_database(["manage.py", *arguments]) is needed


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:p%40ss@h:5433/db", ("u", "p@ss", "h", 5433, "db")),
        ("postgres://u@%2FTmp%2FSock:5433/db", ("u", "", "/Tmp/Sock", 5433, "db")),
        ("postgresql://u@%2FTmp%2FSock/db", ("u", "", "/Tmp/Sock", "", "db")),
    ],
)
def test_a_url_becomes_a_database(url: str, expected: tuple[str | int, ...]) -> None:
    config = databases.database(url, pool_size=3)
    assert tuple(config[k] for k in ("USER", "PASSWORD", "HOST", "PORT", "NAME")) == expected
    assert config["CONN_MAX_AGE"] == 0
    assert config["OPTIONS"]["pool"]["max_size"] == 3


def test_the_index_keeps_the_options_of_its_url() -> None:
    config = databases.database("postgresql://u@h/db?currentSchema=rag", pool_size=1)
    options = databases.read_only(config)["OPTIONS"]["options"]
    assert options == "-c search_path=rag -c default_transaction_read_only=on"


@pytest.mark.parametrize(
    ("proxies", "forwarded", "expected"),
    [
        (0, "6.6.6.6", "10.0.0.1"),
        (1, "", "10.0.0.1"),
        (1, "6.6.6.6, 203.0.113.7", "203.0.113.7"),
        (2, "6.6.6.6, 203.0.113.7, 10.0.0.2", "203.0.113.7"),
    ],
)
def test_the_address_is_what_the_trusted_proxies_saw(
    proxies: int, forwarded: str, expected: str
) -> None:
    request = RequestFactory().get(
        "/", headers={"x-forwarded-for": forwarded}, REMOTE_ADDR="10.0.0.1"
    )
    with override_settings(PROXY_COUNT=proxies):
        assert client_address(request) == expected


def test_the_log_has_no_query_string() -> None:
    request = RequestFactory().get("/api/search?query=secret")
    assert RequestMiddleware.format_request(request) == "GET /api/search"


@pytest.mark.parametrize(
    ("wrong", "identifier"),
    [
        ({"DEBUG": True}, "ragsite.E001"),
        ({"ALLOWED_HOSTS": ["*"]}, "ragsite.W001"),
        ({"SECURE_SSL_REDIRECT": False}, "ragsite.W002"),
    ],
)
def test_an_open_production_site_is_found(wrong: dict[str, object], identifier: str) -> None:
    closed = {"DEVELOPMENT": False, "DEBUG": False, "SECURE_SSL_REDIRECT": True, "PROXY_COUNT": 0}
    with override_settings(**{**closed, **wrong}):
        found = {
            message.id for message in run_checks(tags=["security"], include_deployment_checks=True)
        }
    assert identifier in found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SEARCH_WINDOW", "0"),
        ("SEARCH_HNSW_EF", "5000"),
        ("SEARCH_MAX_WINDOWS", "0"),
        ("SEARCH_LEXICAL_ENGINE", "BM25"),
        ("SEARCH_STATEMENT_TIMEOUT_MS", "0"),
        ("SEARCH_TITLE_COVERAGE", "7"),
        ("SEARCH_WINDOWS", "100"),
    ],
)
def test_a_setting_out_of_its_bounds_or_misspelt_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("ENVIRONMENT", "development")
    monkeypatch.setenv(name, value)
    environment = Environment()
    environment.search_settings()
    with pytest.raises(ImproperlyConfigured, match=f"{name}: "):
        environment.seal()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"SEARCH_EMBEDDER": "nope.X"}, "SEARCH_EMBEDDER names 'nope.X'"),
        ({"SEARCH_RERANKER": "nope.X"}, "SEARCH_RERANKER names 'nope.X'"),
        ({"SEARCH_RERANKER": "http"}, "SEARCH_RERANK_URL is not set"),
        (
            {"SEARCH_EMBEDDER": "search.embedding_http.OpenAIEmbedder"},
            "SEARCH_EMBED_URL is not set",
        ),
        ({}, None),
    ],
)
def test_a_backend_that_cannot_work_is_a_system_check(
    values: dict[str, str], named: str | None
) -> None:
    with override_settings(**values):
        messages = [m.msg for m in run_checks() if (m.id or "").startswith("search.")]
    assert [named in message for message in messages if named] == ([True] if named else [])
    assert named or not messages


@pytest.mark.parametrize(("url", "expected"), [("postgresql://rag_owner@db/i", 1), ("", 0)])
def test_a_site_that_could_write_the_index_is_warned(
    monkeypatch: pytest.MonkeyPatch, url: str, expected: int
) -> None:
    monkeypatch.setenv("INDEX_OWNER_URL", url)
    with override_settings(DEVELOPMENT=False):
        ids = [m.id for m in run_checks(include_deployment_checks=True)]
    assert ids.count("ragsite.W003") == expected
