"""Databases of the tests: one server, a template of an empty index, clones of it."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from indexer import store
from tests import postgres
from tests.postgres import DIMENSIONS, TestIndex

# Two runs at once use one server, so each process names its databases after itself.
WORKER = f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{os.getpid()}"
IDLE = f"index_idle_{WORKER}"
_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a test that asks for an index reach the database without Django's own isolation."""
    for item in items:
        if "index" in getattr(item, "fixturenames", ()) and not item.get_closest_marker(
            "django_db"
        ):
            item.add_marker(pytest.mark.django_db(databases=["default", "index"], transaction=True))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what only BM25 can show, where the server has none (the wheel for Linux on Arm)."""
    if item.get_closest_marker("bm25") and not postgres.has_bm25():
        pytest.skip("this PostgreSQL has no pg_textsearch")


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: Any, index_template: str
) -> Iterator[None]:
    """Create Django's own test database; the index is not Django's to create."""
    from django.test.utils import setup_databases, teardown_databases

    default = connections["default"].settings_dict
    default.update(postgres.django_settings("postgres"))
    default["TEST"]["NAME"] = f"test_ragsite_{WORKER}"
    # Between tests the application reads an index of its own: a template that somebody is
    # connected to cannot be cloned.
    postgres.create_database(IDLE, template=index_template)
    _point_index_at(IDLE)
    with django_db_blocker.unblock():
        created = setup_databases(
            verbosity=0, interactive=False, aliases=["default"], serialized_aliases=[]
        )
        yield
        connections["index"].close_pool()
        connections["default"].close_pool()
        teardown_databases(created, verbosity=0)
    postgres.drop_database(IDLE)


@pytest.fixture(scope="session")
def index_template() -> Iterator[str]:
    """Name of a database with the tables of an index and no row."""
    postgres.drop_databases_of_dead_processes()
    name = f"index_template_{WORKER}"
    postgres.create_database(name)
    store.init_schema(postgres.url_of(name), dimensions=DIMENSIONS)
    yield name
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def make_index(index_template: str) -> Iterator[Callable[[], TestIndex]]:
    """A function that makes an empty index; all are dropped at the end."""
    made: list[str] = []

    def make() -> TestIndex:
        name = f"index_{WORKER}_{next(_numbers)}"
        postgres.create_database(name, template=index_template)
        made.append(name)
        return TestIndex(name)

    yield make
    connections["index"].close_pool()
    for name in made:
        postgres.drop_database(name)


@pytest.fixture
def index(
    make_index: Callable[[], TestIndex], use_index: Callable[[TestIndex], TestIndex]
) -> TestIndex:
    """An empty index that the application reads."""
    return use_index(make_index())


@pytest.fixture
def use_index(django_db_setup: None) -> Iterator[Callable[[TestIndex], TestIndex]]:
    """A function that points the application at an index, until the test ends."""

    def use(index: TestIndex) -> TestIndex:
        _point_index_at(index.name)
        return index

    yield use
    _point_index_at(IDLE)


def _point_index_at(name: str) -> None:
    connection = connections["index"]
    connection.close()
    connection.close_pool()
    connection.settings_dict.update(postgres.django_settings(name, "rag_reader"))


@pytest.fixture(scope="session")
def sample_path() -> Path:
    return postgres.BASE_DIR / "indexer" / "sample" / "sample.snapshot.jsonl.gz"
