"""The values that travel between the stages: frozen dataclasses, standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

ROW_TYPES: Final = (
    "issue",
    "pull_request",
    "release",
    "doc",
    "wiki_doc",
    "diff",
    "issue_comment",
    "pr_review",
    "pr_review_comment",
)
STATES: Final = (
    "open",
    "closed",
    "published",
    "active",
    "APPROVED",
    "CHANGES_REQUESTED",
    "COMMENTED",
    "DISMISSED",
    "PENDING",
)
ANY: Final = "all"  # of the filters `type` and `state`: the same as leaving them out
TYPE_FILTERS: Final = (*ROW_TYPES, ANY)
STATE_FILTERS: Final = (*STATES, ANY)
FUSIONS: Final = ("rrf", "dense_only", "sparse_only")
SORTS: Final = ("relevance", "updated_desc", "created_desc")
RANKERS: Final = ("dense", "sparse", "title")

MAX_TOP_K: Final = 50
MAX_GRAPH_HOPS: Final = 2
MAX_QUERY_CHARACTERS: Final = 8_000  # as long as the longest indexed content


@dataclass(frozen=True, slots=True)
class Filters:
    """What every row of an answer must satisfy; None and () mean "any".

    `labels` are combined with AND. `since` is inclusive and `until` exclusive; both are compared
    with `updated_at` and must carry a time zone.
    """

    repo: str | None = None
    type: str | None = None
    state: str | None = None
    labels: tuple[str, ...] = ()
    milestone: str | None = None
    assignee: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search, or a scan where `query` is blank.

    `top_k` counts entities in a search, rows in a scan. `page` is the token of a scan's answer
    that leads to the next rows. A scan ignores `fusion`, `rerank`, `graph_expand` and `graph_hops`.
    """

    query: str
    filters: Filters = Filters()
    top_k: int = 10
    fusion: str = "rrf"
    sort: str = "relevance"
    rerank: bool = True
    include_content: bool = False
    graph_expand: bool = False
    graph_hops: int = 1
    page: str | None = None

    @property
    def is_scan(self) -> bool:
        """Whether rows are asked for by time alone."""
        return not self.query.strip()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row as a ranker returned it: its score there, and what collapse and sorting need.

    `score` is cosine similarity for `dense`, the engine's relevance for `sparse` and `title`:
    larger is better, and comparable only within one ranker.
    """

    vector_id: str
    score: float
    repo: str
    type: str
    number: int
    doc_path: str
    file_path: str
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RankedRow:
    """A row of the pool after fusion: where each ranker had it, and its fused score.

    `ranks` and `scores` are keyed by ranker name, ranks from 1; `window` is 0 for the first
    fetch and counts the deepening steps.
    """

    candidate: Candidate
    score: float
    ranks: Mapping[str, int]
    scores: Mapping[str, float]
    window: int = 0
    rerank_score: float | None = None

    @property
    def vector_id(self) -> str:
        return self.candidate.vector_id


@dataclass(frozen=True, slots=True)
class Entity:
    """Rows that point at one thing: the best-placed row, and the others in final order."""

    key: str
    representative: RankedRow
    others: tuple[RankedRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the index as it is shown. `content` is None where only a reference is needed."""

    vector_id: str
    repo: str
    type: str
    state: str
    labels: tuple[str, ...]
    milestone: str
    assignees: tuple[str, ...]
    created_at: datetime | None
    updated_at: datetime | None
    number: int
    tag_name: str
    doc_path: str
    wiki_extension: str
    commit_sha: str
    file_path: str
    file_status: str
    commit_date: datetime | None
    commit_author: str
    author: str
    comment_id: int
    review_id: int
    line: int
    title: str
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Snippet:
    """A passage of a row's content; `marks` are [start, end) offsets of the query's words in it."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class FoldedRow:
    """A row that was folded under a representative, ready to be shown."""

    ranked: RankedRow
    row: Row
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One entity of the answer, ready to be shown."""

    entity_key: str
    ranked: RankedRow
    row: Row
    title: str
    url: str
    snippet: Snippet
    others: tuple[FoldedRow, ...] = ()
    content: str | None = None
    content_source: str | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A row that a result mentions or that mentions it, outside `top_k`.

    `ranked` has no rank and the score 0: no ranker brought the row. `hop` is the shortest
    distance, 1 or 2; `source` the row shown of the result it was reached from. `others` are further
    neighbours that point at the same entity.
    """

    entity_key: str
    ranked: RankedRow
    row: Row
    title: str
    url: str
    snippet: Snippet
    hop: int
    source: Row
    others: tuple[FoldedRow, ...] = ()
    content: str | None = None
    content_source: str | None = None

    @property
    def source_name(self) -> str:
        """What the result it was reached from is called: a slug or path, else its vector_id."""
        return self.source.doc_path or self.source.vector_id


@dataclass(frozen=True, slots=True)
class Degradation:
    """A stage that could not run as asked, and why."""

    stage: str
    reason: str


@dataclass(frozen=True, slots=True)
class UnmatchedFilter:
    """A filter value that no row of the index has, with near names that some row has."""

    filter: str
    value: str
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row of the pool in final order, with the entity it belongs to: the view before collapse."""

    ranked: RankedRow
    entity_key: str


@dataclass(frozen=True, slots=True)
class StageTrace:
    """What the stages did, for the response and for the inspection page."""

    candidates: Mapping[str, int]
    pool: tuple[PlacedRow, ...]
    pool_entities: int
    slot_entities: int
    windows: int
    engines: Mapping[str, str]
    timings_ms: Mapping[str, float]
    # Why no row, or not every row, was reranked; None when all that were sent came back.
    rerank_reason: str | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer: at most `top_k` hits, each a distinct entity, and what happened on the way."""

    request: SearchRequest
    hits: tuple[Hit, ...]
    trace: StageTrace
    complete: bool = True
    incomplete_reason: str | None = None
    degraded: tuple[Degradation, ...] = ()
    filters_unmatched: tuple[UnmatchedFilter, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    rerank_applied: bool = False

    @property
    def shown(self) -> tuple[Hit | Neighbour, ...]:
        """The hits, then their neighbours."""
        return (*self.hits, *self.neighbours)

    @property
    def rerank_requested(self) -> bool:
        return self.request.rerank


@dataclass(frozen=True, slots=True)
class ScannedRow:
    """A row outside a ranking, ready to be shown.

    `content` is None where it was not asked for; `content_source`, here and in results, says where
    it comes from: `index` or `github`.
    """

    entity_key: str
    row: Row
    title: str
    url: str
    snippet: Snippet
    content: str | None = None
    content_source: str | None = None


@dataclass(frozen=True, slots=True)
class ScanResult:
    """One tile of rows in time order, not collapsed.

    `sort`, `since` and `until` are what applied. `next_page` is what the caller passes on to go
    further back; None when no more rows exist.
    """

    request: SearchRequest
    rows: tuple[ScannedRow, ...]
    sort: str
    since: datetime
    until: datetime | None
    truncated: bool
    next_page: str | None
    timings_ms: Mapping[str, float]
    degraded: tuple[Degradation, ...] = ()
    filters_unmatched: tuple[UnmatchedFilter, ...] = ()
