"""A reranker behind HTTP: the setting SEARCH_RERANKER is `http`.

SEARCH_RERANK_URL is the full address of the endpoint; SEARCH_RERANK_API names its dialect:

- `cohere`: https://docs.cohere.com/reference/rerank (v2)
- `jina`: https://jina.ai/reranker (/v1/rerank)
- `vllm`: https://docs.vllm.ai, "Re-rank API" (/rerank, /v1/rerank)
- `tei`: https://huggingface.github.io/text-embeddings-inference (/rerank)
- `workers_ai`: https://developers.cloudflare.com/workers-ai/models/bge-reranker-base
  (/client/v4/accounts/{account}/ai/run/@cf/baai/bge-reranker-base)
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from search import conf
from search.remote import Call, RemoteError, plain, post
from search.rerank import RerankError, Score, as_score

logger = logging.getLogger(__name__)

Payload = dict[str, Any]


def _cohere(model: str, query: str, texts: list[str]) -> Payload:
    return {"model": model, "query": query, "documents": texts, "top_n": len(texts)}


def _jina(model: str, query: str, texts: list[str]) -> Payload:
    return _cohere(model, query, texts) | {"return_documents": False}


def _vllm(model: str, query: str, texts: list[str]) -> Payload:
    # -1 is the model's own limit; without it one long text makes the whole request a 400.
    return _cohere(model, query, texts) | {"truncate_prompt_tokens": -1}


def _tei(model: str, query: str, texts: list[str]) -> Payload:
    del model  # a TEI server has one
    return {"query": query, "texts": texts, "raw_scores": False, "truncate": True}


def _workers_ai(model: str, query: str, texts: list[str]) -> Payload:
    del model  # it is in the URL
    return {"query": query, "contexts": [{"text": text} for text in texts], "top_k": len(texts)}


APIS: Final[Mapping[str, Callable[[str, str, list[str]], Payload]]] = {
    "cohere": _cohere,
    "jina": _jina,
    "vllm": _vllm,
    "tei": _tei,
    "workers_ai": _workers_ai,
}

# One reader for every dialect: gateways answer in another dialect than they were asked in.
_LIST_KEYS: Final = ("results", "data", "response")
_INDEX_KEYS: Final = ("index", "id")
_SCORE_KEYS: Final = ("relevance_score", "score")


@dataclass(slots=True)
class _Faults:
    """What in an answer could not be used, counted."""

    bad_index: int = 0
    doubled: int = 0
    bad_score: int = 0


class HttpReranker:
    """Scores with a server; settings are read at each call."""

    name = "http"

    def score(self, query: str, texts: Sequence[str]) -> Sequence[Score]:
        """Return a score or None a text; raises RerankError if the server gave no list of them."""
        build = APIS.get(conf.get("SEARCH_RERANK_API"))
        url = conf.get("SEARCH_RERANK_URL")
        if build is None:
            raise RerankError(f"SEARCH_RERANK_API must be one of {', '.join(APIS)}")
        if not url:
            raise RerankError("SEARCH_RERANK_URL is not set")
        seconds = conf.get("SEARCH_RERANK_BUDGET_MS") / 1000
        payload = build(
            conf.get("SEARCH_RERANK_MODEL"), plain(query), [plain(text) for text in texts]
        )
        key = conf.get("SEARCH_RERANK_API_KEY")
        call = Call(url, payload, seconds=seconds, attempt_seconds=seconds, api_key=key)
        try:
            answer = post(call)
        except RemoteError as error:
            raise RerankError(f"the reranker {error}") from None
        return parse(answer, len(texts))


def parse(answer: object, count: int) -> list[Score]:
    """Return the scores of `count` texts from a decoded answer, None where it has none.

    Raises RerankError if the answer holds no list of results. An item whose index is not one of
    the texts, or whose score is not a finite number, is left out. Of two items for one text the
    first counts, whatever its score: it has the better place in the server's own order.
    """
    scores: dict[int, Score] = {}
    faults = _Faults()
    for item in _items(answer):
        index = _first(item, _INDEX_KEYS)
        if type(index) is not int or not 0 <= index < count:
            faults.bad_index += 1
        elif index in scores:
            faults.doubled += 1
        else:
            scores[index] = as_score(_first(item, _SCORE_KEYS))
            faults.bad_score += scores[index] is None
    _report(faults, missing=count - len(scores), count=count)
    return [scores.get(index) for index in range(count)]


def _items(answer: object) -> list[Any]:
    """Return the list of results, bare or under one of the known keys."""
    if isinstance(answer, dict) and isinstance(answer.get("result"), dict):
        answer = answer["result"]  # Cloudflare's envelope
    found = _first(answer, _LIST_KEYS) if isinstance(answer, dict) else answer
    if not isinstance(found, list):
        raise RerankError("the reranker answered without a list of results")
    return found


def _first(item: object, keys: Sequence[str]) -> Any:
    """Return the value of the first of `keys` that `item` has, None if it has none."""
    if not isinstance(item, dict):
        return None
    return next((item[key] for key in keys if key in item), None)


def _report(faults: _Faults, *, missing: int, count: int) -> None:
    if missing or faults != _Faults():
        logger.warning(
            "Rerank answer for %d texts: %d missing, %d bad scores, %d doubled, %d bad indexes",
            count,
            missing,
            faults.bad_score,
            faults.doubled,
            faults.bad_index,
        )
