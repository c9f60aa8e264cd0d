"""The API does what its schema says: generated requests against the loaded sample."""

from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from django.contrib.auth import get_user_model
from django.core.wsgi import get_wsgi_application
from django.test.utils import override_settings
from hypothesis import HealthCheck, settings
from knox.models import get_token_model
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    positive_data_acceptance,
)

from indexer.load import load_snapshot
from tests.postgres import TestIndex

# A value of the wrong type can still be a right text in a query string ("None" is a text), and a
# schema cannot say that `since` is before `until` or that a page belongs to the same scan.
EXCLUDED = [negative_data_rejection, positive_data_acceptance]


@pytest.fixture(scope="module")
def sample(make_index: Callable[[], TestIndex], sample_path: Any) -> TestIndex:
    index = make_index()
    load_snapshot(sample_path, index.owner_url, on_bad_line=print)
    return index


@pytest.fixture
def index(sample: TestIndex, use_index: Callable[[TestIndex], TestIndex]) -> TestIndex:
    return use_index(sample)


@pytest.fixture
def api(index: TestIndex, transactional_db: None) -> Any:
    return schemathesis.openapi.from_wsgi("/api/schema", get_wsgi_application())


schema = schemathesis.pytest.from_fixture("api")


@schema.parametrize()
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_described(case: schemathesis.Case) -> None:
    user, _ = get_user_model().objects.get_or_create(username="generator")
    _, token = get_token_model().objects.create(user)
    with override_settings(SEARCH_EMBEDDER="tests.embedders.FirstAxis"):
        case.call_and_validate(
            headers={"Authorization": f"Token {token}"}, excluded_checks=EXCLUDED
        )
