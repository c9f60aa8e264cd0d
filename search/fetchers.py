"""How each ranker is called: with which engine, and what happens when it cannot run."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from search import conf, core_text, embedding, rankers
from search.deepening import Fetch
from search.embedding import Vector
from search.errors import EmbeddingError
from search.normalise import normalise
from search.run import Run
from search.types import Candidate

_FIELD: Final = {"sparse": "content", "title": "title"}


def fetchers(run: Run, names: tuple[str, ...], vector: Future[Vector] | None) -> dict[str, Fetch]:
    """Return a function for each ranker in `names` that fetches its next window, in that order.

    `vector` is the future vector of the query; without it there is no dense ranker. A query
    without any word is looked for literally instead of by words.
    """
    tokens = normalise(run.request.query)
    found: dict[str, Fetch] = {}
    for name in names:
        if name == "dense" and vector is not None:
            found[name] = partial(_fetch_dense, run, vector)
        elif tokens:
            found[name] = partial(_fetch_lexical, run, name, tokens)
        elif name == "sparse":
            found[name] = partial(_fetch_literal, run)
    return found


def _fetch_dense(
    run: Run, future: Future[Vector], seen: Sequence[str], limit: int
) -> list[Candidate]:
    """Fetch a window of the dense ranker; without a vector it brings nothing and says so."""
    try:
        with run.timed("embed"):
            vector = embedding.wait(future)
        _check_model(run)
        with run.timed("dense"):
            found = run.guarded(
                "dense",
                lambda: rankers.dense(
                    run.cursor,
                    vector=vector,
                    state=run.state,
                    wanted=run.request.filters,
                    seen=seen,
                    limit=limit,
                ),
            )
    except EmbeddingError as error:
        run.degrade("dense", str(error))
        found = None
    if found is None:
        run.failed.add("dense")
        return []
    run.engines["dense"] = "exact" if run.state.exact else "hnsw"
    return found


def _check_model(run: Run) -> None:
    model = embedding.embedder().model
    if model != run.state.embedding_model:
        raise EmbeddingError(
            f"Queries are embedded by {model}, the index by {run.state.embedding_model}: their "
            "vectors cannot be compared."
        )


def _fetch_lexical(
    run: Run, name: str, tokens: str, seen: Sequence[str], limit: int
) -> list[Candidate]:
    """Fetch a window by BM25 where it can be trusted, else by PostgreSQL's full-text search."""
    arguments: dict[str, Any] = {
        "field": _FIELD[name],
        "query": tokens,
        "state": run.state,
        "wanted": run.request.filters,
        "seen": seen,
        "limit": limit,
    }
    engine = run.engines.get(name) or _engine(run)
    with run.timed(name):
        found: list[Candidate] | None = None
        if engine == "bm25":
            found = run.guarded("bm25", lambda: _kept(run, name, tokens, rankers.bm25, arguments))
            engine = engine if found is not None else "core"
        if engine == "core":
            found = run.guarded(name, lambda: _kept(run, name, tokens, core_text.core, arguments))
    if found is None:
        run.failed.add(name)
        return []
    run.engines[name] = engine
    return found


def _kept(
    run: Run,
    name: str,
    tokens: str,
    rank: Callable[..., list[Candidate]],
    arguments: Mapping[str, Any],
) -> list[Candidate]:
    """Rank; of titles keep those that hold most of what was asked.

    A title that shares one word with a long question is no evidence, and counts in the fusion as
    much as the best passage: docs/decisions/title-ranker.md. A window that shrinks this way ends
    the ranker; what it leaves out is found by content, which begins with the title.
    """
    found = rank(run.cursor, **arguments)
    if name != "title":
        return found
    share = conf.get("SEARCH_TITLE_COVERAGE")
    return rankers.covering(run.cursor, titles=found, query=tokens, state=run.state, share=share)


def _engine(run: Run) -> str:
    wanted = conf.get("SEARCH_LEXICAL_ENGINE")
    return "core" if wanted == "core" or run.state.bm25_refusal() else "bm25"


def _fetch_literal(run: Run, seen: Sequence[str], limit: int) -> list[Candidate]:
    """Fetch rows that hold a query without any word, such as `(`, as it stands."""
    with run.timed("sparse"):
        found = run.guarded(
            "sparse",
            lambda: rankers.literal(
                run.cursor,
                query=run.request.query.strip(),
                wanted=run.request.filters,
                seen=seen,
                limit=limit,
            ),
        )
    if found is None:
        run.failed.add("sparse")
        return []
    run.engines["sparse"] = "literal"
    return found
