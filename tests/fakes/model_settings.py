"""Defaults of the settings of the model backends, for a fixture: drop it once conf.py has them."""

from typing import Any, Final

import pytest

from search import conf

DEFAULTS: Final[dict[str, Any]] = {
    "SEARCH_RERANKER": "",
    "SEARCH_RERANK_URL": "",
    "SEARCH_RERANK_API": "cohere",
    "SEARCH_RERANK_API_KEY": "",
    "SEARCH_RERANK_MODEL": "",
    "SEARCH_RERANK_BATCH": 32,
    "SEARCH_RERANK_MAX_CHARS": 2_000,
    "SEARCH_RERANK_BUDGET_MS": 1_500,
    "SEARCH_RERANK_COOLDOWN_S": 30,
    "SEARCH_EMBED_URL": "",
    "SEARCH_EMBED_API_KEY": "",
    "SEARCH_EMBED_MODEL": "",
    "SEARCH_EMBED_DIMENSIONS": 0,
    "SEARCH_EMBED_QUERY_PREFIX": "",
    "SEARCH_EMBED_PASSAGE_PREFIX": "",
    "SEARCH_EMBED_BATCH": 32,
    "SEARCH_EMBED_BATCH_TIMEOUT_MS": 60_000,
}


@pytest.fixture(autouse=True)
def model_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, default in DEFAULTS.items():
        if name not in conf._DEFAULTS:
            monkeypatch.setitem(conf._DEFAULTS, name, default)
