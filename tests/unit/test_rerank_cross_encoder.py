"""The cross-encoder backend, with a stand-in for the library."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_django import Settings

from search.circuit import Circuit
from search.rerank import RerankOutcome, rerank
from search.rerank_cross_encoder import CrossEncoderReranker

LIBRARY = "sentence_transformers"


class FakeCrossEncoder:
    """Scores a pair by the length of its text; a model named `missing` is not on this machine."""

    made: list[tuple[str, dict[str, Any]]]

    def __init__(self, model: str, **options: Any) -> None:
        if model == "missing":
            raise OSError("no such file")
        self.made.append((model, options))

    def predict(self, pairs: list[tuple[str, str]], **options: Any) -> list[float]:
        assert options == {"show_progress_bar": False}
        return [float(len(text)) for _, text in pairs]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[FakeCrossEncoder]:
    FakeCrossEncoder.made = []
    monkeypatch.setitem(sys.modules, LIBRARY, SimpleNamespace(CrossEncoder=FakeCrossEncoder))
    return FakeCrossEncoder


def run(backend: CrossEncoderReranker) -> RerankOutcome:
    return rerank("q", ["a", "bbb"], reranker=backend, circuit=Circuit())


def test_it_scores_and_loads_once_from_this_machine_only(
    library: type[FakeCrossEncoder], settings: Settings
) -> None:
    settings.SEARCH_RERANK_MODEL = "/models/small"
    backend = CrossEncoderReranker()
    assert library.made == []
    assert run(backend) == run(backend) == RerankOutcome((1.0, 3.0), True)
    assert library.made == [("/models/small", {"local_files_only": True})]


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("", "SEARCH_RERANK_MODEL is not set"),
        ("missing", "the model at SEARCH_RERANK_MODEL could not be loaded"),
    ],
)
def test_a_model_that_cannot_be_had_is_a_reason(
    model: str, reason: str, settings: Settings
) -> None:
    settings.SEARCH_RERANK_MODEL = model
    assert run(CrossEncoderReranker()) == RerankOutcome((None, None), reason=reason)


def test_a_library_that_is_not_installed_is_a_reason(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setitem(sys.modules, LIBRARY, None)
    settings.SEARCH_RERANK_MODEL = "/models/small"
    assert run(CrossEncoderReranker()).reason == (
        "the package sentence-transformers is not installed: pip install sentence-transformers"
    )
