"""The inspection page and the browse pages, without a browser."""

import ast
import csv
import io
import json
import math
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings
from django.urls import reverse

from search import services
from search.inspection import exports, form
from search.inspection.answer import answer, passages, web_address
from search.inspection.comparison import sides
from search.inspection.form import Parameters
from search.serializers import ValidationError, messages_by_field, to_request
from search.types import SearchRequest, SearchResult, Snippet
from tests import postgres
from tests.postgres import TestIndex, row

PAGE = "/admin/search/inspect/"
COMPARE = f"{PAGE}compare/"
ROWS = f"{PAGE}rows/"
CSV = f"{PAGE}csv/"

HOSTILE = [
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(1)</script>",
    "{{7*7}}{% debug %}",
    "\u202egnp.exe\u2066",
    "x" * 8_000,
]


@pytest.fixture(autouse=True)
def first_axis() -> Iterator[None]:
    """Queries point along the first axis."""
    with override_settings(SEARCH_EMBEDDER="tests.embedders.FirstAxis"):
        yield


@pytest.fixture
def inspector(index: TestIndex) -> Client:
    """A client of a staff user who holds the permission and no other."""
    user = User.objects.create_user("inspector", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="inspect_search"))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def root(index: TestIndex) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def at(angle: float) -> list[float]:
    return [math.cos(angle), math.sin(angle)]


def load_file(index: TestIndex) -> None:
    """A file of four rows, three of them nearest to the query, and five issues."""
    path = "rules/limit.md"
    diffs = [
        row(f"c:{n}", type="diff", file_path=path, commit_sha=f"{n}a1b2c3", title=path,
            content=f"limit the rounds {n}", embedding=at(n / 100),
            updated_at=f"2026-01-0{n + 1}T00:00:00Z")
        for n in range(3)
    ]  # fmt: skip
    document = row("d:1", type="doc", doc_path=path, content="limit", embedding=at(0.9))
    issues = [
        row(f"i:{n}", number=n + 1, title=f"Limit {n}", content="a limit", embedding=at(0.2 + n))
        for n in range(5)
    ]
    index.load([*diffs, document, *issues])


def text_of(client: Client, url: str, status: int = 200, **query: Any) -> str:
    response = client.get(f"{url}?{urlencode(query, doseq=True)}" if query else url)
    assert response.status_code == status, response.content[:500]
    return response.content.decode()


def ask(query: str, **options: Any) -> SearchResult:
    return services.search(request=SearchRequest(query, **options))


# --- Who may see it ------------------------------------------------------------------------------


@pytest.mark.parametrize("url", [PAGE, COMPARE, ROWS, CSV])
def test_an_anonymous_visitor_gets_the_login_page(index: TestIndex, url: str) -> None:
    response = Client().get(url)
    assert response.status_code == 302
    assert response["Location"].startswith("/admin/login/")


@pytest.mark.parametrize("url", [PAGE, COMPARE, ROWS, CSV])
def test_staff_without_the_permission_is_refused(index: TestIndex, url: str) -> None:
    client = Client()
    client.force_login(User.objects.create_user("staff", is_staff=True))
    assert client.get(url).status_code == 403
    assert "Inspect a search" not in text_of(client, "/admin/")


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
@pytest.mark.parametrize("url", [PAGE, COMPARE, ROWS, CSV])
def test_no_method_that_writes_is_taken(inspector: Client, url: str, method: str) -> None:
    assert getattr(inspector, method)(url, {"query": "limit"}).status_code == 405


def test_it_is_listed_in_the_admin_and_can_be_granted(inspector: Client) -> None:
    index_page = text_of(inspector, "/admin/")
    assert f'href="{PAGE}"' in index_page
    assert reverse("admin:search_inspect_changelist") == PAGE
    permission = Permission.objects.get(codename="inspect_search")
    assert str(permission) == "Search | inspection | Can inspect searches"


def test_the_list_of_rows_links_to_it(root: Client, index: TestIndex) -> None:
    load_file(index)
    assert f'href="{PAGE}"' in text_of(root, "/admin/ingest_readonly/searchdoc/")
    reader = User.objects.create_user("reader", is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_searchdoc"))
    client = Client()
    client.force_login(reader)
    assert f'href="{PAGE}"' not in text_of(client, "/admin/ingest_readonly/searchdoc/")


# --- The form ------------------------------------------------------------------------------------


def test_the_empty_page_offers_the_repositories(inspector: Client, index: TestIndex) -> None:
    index.load([row("i:1", repo="acme/b", number=1), row("i:2", repo="acme/a", number=1)])
    page = text_of(inspector, PAGE)
    assert re.findall(r'<option value="(acme/.)">', page) == ["acme/a", "acme/b"]
    assert "errornote" not in page


BAD: dict[str, Any] = {
    "query": "x", "top_k": "51", "type": "diffs", "since": "2026-01-01", "until": "yesterday",
    "labels": "b" * 201, "fusion": "rff", "repo": "a\0b", "sort": "newest",
}  # fmt: skip


def test_an_error_stands_at_its_field_in_the_words_of_the_api(
    inspector: Client, index: TestIndex
) -> None:
    load_file(index)
    page = text_of(inspector, PAGE, status=400, **BAD)
    with pytest.raises(ValidationError) as caught:
        to_request({**BAD, "top_k": 51, "labels": [BAD["labels"]]})
    for name, messages in messages_by_field(caught.value).items():
        at_field = re.search(rf'id="error_{name}">(.*?)</ul>', page, re.DOTALL)
        assert at_field, name
        assert all(m.replace('"', "&quot;") in at_field[1] for m in messages), name
        assert f'aria-describedby="error_{name}"' in page
    assert '<details class="more" open>' in page
    assert 'value="diffs" selected' in page


@pytest.mark.parametrize("query", ["", "   "])
def test_a_query_is_needed(inspector: Client, index: TestIndex, query: str) -> None:
    load_file(index)
    page = text_of(inspector, PAGE, status=400, query=query, top_k="0")
    assert "A query is needed" in page
    assert 'id="error_top_k"' in page


def test_an_unknown_parameter_is_named(inspector: Client, index: TestIndex) -> None:
    load_file(index)
    assert "Did you mean labels?" in text_of(inspector, PAGE, status=400, query="x", lables="a")


def test_the_url_holds_the_state(inspector: Client, index: TestIndex) -> None:
    load_file(index)
    page = text_of(
        inspector, PAGE, query="limit", labels=["a", "b\nc"], top_k=7, rerank="false", type="diff",
    )  # fmt: skip
    assert 'value="limit"' in page
    assert ">a\nb\nc</textarea>" in page
    assert '<option value="false" selected>off' in page
    assert '<option value="diff" selected>' in page
    links = re.findall(r'href="/api/search\?([^"]*)"', page)
    assert links == [
        "query=limit&amp;labels=a&amp;labels=b&amp;labels=c&amp;top_k=7&amp;rerank=false&amp;type=diff"
    ]


def test_every_parameter_of_the_api_has_a_control() -> None:
    from search.serializers import SearchParameters

    in_sight, more = form.controls(Parameters(()), {})
    assert {c.name for c in (*in_sight, *more)} == set(SearchParameters().fields) - {"page"}
    assert [c.name for c in in_sight] == list(form.IN_SIGHT)


# --- The answer ----------------------------------------------------------------------------------


def test_the_page_makes_one_call_into_the_service(
    inspector: Client, index: TestIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_file(index)
    calls: list[SearchRequest] = []
    whole: Callable[..., SearchResult] = services.search

    def counted(*, request: SearchRequest) -> SearchResult:
        calls.append(request)
        return whole(request=request)

    monkeypatch.setattr(services, "search", counted)
    for url, expected in ((PAGE, 1), (CSV, 1), (COMPARE, 2), (ROWS, 0)):
        calls.clear()
        inspector.get(url, {"query": "limit", "key": "thread:acme/app:1"})
        assert len(calls) == expected, url


def test_the_page_itself_reads_no_database() -> None:
    """What draws a trace knows neither the rankers nor a connection."""
    package = postgres.BASE_DIR / "search" / "inspection"
    imported: set[str] = set()
    for module in package.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
    refused = ("django.db", "psycopg", "ingest_readonly", "search.rankers", "search.core_text")
    assert imported
    assert [name for name in imported if name.startswith(refused)] == []


def test_linked_pages_and_texts_are_shown(inspector: Client, index: TestIndex) -> None:
    pages = [
        row(f"w:{n}", type="wiki_doc", doc_path=f"Page{n}", content=f"limit {n}\n<b>text</b>",
            embedding=at(n / 9))
        for n in range(2)
    ]  # fmt: skip
    edge = {
        "src_vector_id": "w:0",
        "dst_vector_id": "w:1",
        "repo": "acme/app",
        "src_slug": "Page0",
        "dst_slug": "Page1",
        "edge_kind": "mention",
        "updated_at": None,
    }
    index.load(pages, [edge])
    page = text_of(
        inspector, PAGE, query="limit", top_k=1, graph_expand="true", include_content="true"
    )
    assert "1 hop from <bdi>Page0</bdi>" in page
    assert "&lt;b&gt;text&lt;/b&gt;</pre>" in page


def test_the_page_adds_a_fixed_number_of_statements_to_the_search(
    inspector: Client, index: TestIndex
) -> None:
    load_file(index)
    text_of(inspector, PAGE, query="limit")
    for query, top_k in (("limit", 1), ("limit", 50), ("rounds", 3), ("none of these", 10)):
        with CaptureQueriesContext(connections["index"]) as of_search:
            ask(query, top_k=top_k)
        with (
            CaptureQueriesContext(connections["index"]) as of_index,
            CaptureQueriesContext(connections["default"]) as of_default,
        ):
            text_of(inspector, PAGE, query=query, top_k=top_k)
        # BEGIN, bounds, repositories, COMMIT.
        assert len(of_index) - len(of_search) == 4
        # Session, user, and two for permissions.
        assert len(of_default) == 4


def test_the_rows_are_shown_as_they_would_have_come(index: TestIndex) -> None:
    load_file(index)
    shown = answer(ask("limit rounds", top_k=4))
    assert [slot.entity for slot in shown.slots[:3]] == [1, 1, 1]
    assert [slot.again for slot in shown.slots[:3]] == [False, True, True]
    assert shown.slots[0].colour == shown.slots[1].colour != 0
    assert [line.pool_place for line in shown.before] == [1, 2, 3, 4]
    assert [line.representative for line in shown.before[:3]] == [True, False, False]
    assert shown.repeats == 4 - shown.result.trace.slot_entities
    assert [card.place for card in shown.cards] == [1, 2, 3, 4]
    assert shown.cards[-1].is_new
    assert shown.folded == len(shown.result.trace.pool) - shown.result.trace.pool_entities


def test_the_shares_add_up_to_the_fused_score(index: TestIndex) -> None:
    load_file(index)
    shown = answer(ask("limit", top_k=5))
    best = max(card.hit.ranked.score for card in shown.cards)
    for card in shown.cards:
        whole = sum(bar.width for bar in card.bars)
        assert whole == pytest.approx(100 * card.hit.ranked.score / best, abs=0.05)
        assert [bar.name for bar in card.bars] == [
            figure.ranker for figure in card.line.figures if figure.rank
        ]


def test_the_page_says_what_is_behind_an_answer(inspector: Client, index: TestIndex) -> None:
    load_file(index)
    page = text_of(inspector, PAGE, query="limit rounds", top_k=3)
    assert "3 more rows of this file" in page
    assert "off: no reranker is configured" in page
    assert "<mark>limit</mark>" in page
    with override_settings(SEARCH_EMBEDDER="tests.embedders.Down"):
        page = text_of(inspector, PAGE, query="limit rounds", top_k=20)
    assert "refused the connection" in page
    with override_settings(SEARCH_EMBEDDER="tests.embedders.Down"):
        page = text_of(inspector, PAGE, 503, query="limit", fusion="dense_only")
    assert "refused the connection" in page


class LastFirst:
    """A reranker for which the later of two issues is the better one."""

    name = "last first"

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [float(text.rsplit(" ", 1)[-1]) for text in texts]


def test_the_page_shows_what_the_reranker_moved(inspector: Client, index: TestIndex) -> None:
    index.load(
        [row(f"i:{n}", number=n, content=f"limit {n}", embedding=at(n / 9)) for n in range(1, 6)]
    )
    with override_settings(SEARCH_RERANKER=f"{__name__}.LastFirst"):
        shown = answer(ask("limit", top_k=5))
        page = text_of(inspector, PAGE, query="limit", top_k=5, why="i:5")
        off = text_of(inspector, PAGE, query="limit", top_k=5, rerank="false")
    assert [card.hit.row.vector_id for card in shown.cards] == [f"i:{n}" for n in (5, 4, 3, 2, 1)]
    assert [line.fused_place for line in shown.before] == [5, 4, 3, 2, 1]
    assert "on: 5 rows scored" in page and "5 → 1" in page and "5.0000: 5 → 1" in page
    assert "off: not asked for" in off


def test_a_filter_that_matches_nothing_offers_near_names(
    inspector: Client, index: TestIndex
) -> None:
    load_file(index)
    page = text_of(inspector, PAGE, query="limit", repo="app")
    assert 'href="?query=limit&amp;repo=acme%2Fapp"' in page


def test_an_empty_index_is_said(inspector: Client) -> None:
    assert "nothing has been loaded" in text_of(inspector, PAGE, 503, query="limit")
    assert text_of(inspector, PAGE)


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ((), [("abcdef", False)]),
        (((0, 2),), [("ab", True), ("cdef", False)]),
        (((1, 2), (2, 6)), [("a", False), ("b", True), ("cdef", True)]),
    ],
)
def test_a_snippet_is_cut_at_its_marks(
    marks: tuple[tuple[int, int], ...], expected: list[tuple[str, bool]]
) -> None:
    found = [(piece.text, piece.marked) for piece in passages(Snippet("abcdef", marks))]
    assert found == expected


# --- Why, compare, all rows ----------------------------------------------------------------------


def test_the_box_explains(inspector: Client, index: TestIndex) -> None:
    load_file(index)
    page = text_of(inspector, PAGE, query="limit", top_k=1, why="acme/app#3")
    assert "raise top_k to see it" in page
    page = text_of(inspector, PAGE, query="limit", type="diff", why="acme/app#3")
    assert "excluded by the filter type" in page
    page = text_of(inspector, PAGE, query="limit", why="acme/app#99")
    assert "The index holds nothing under this name" in page


def test_two_settings_are_compared(inspector: Client, index: TestIndex) -> None:
    load_file(index)
    page = text_of(inspector, COMPARE, query="limit", top_k=3, against_fusion="dense_only")
    assert "dense_only, rerank on" in page and "rrf, rerank on" in page
    both = (answer(ask("limit", top_k=3)), answer(ask("limit", top_k=3, fusion="dense_only")))
    (left, right), overlaps, same = sides(*both, ("a", "b"))
    keys = [[card.hit.entity_key for card in one.cards] for one in both]
    assert overlaps[-1].both == len(set(keys[0]) & set(keys[1]))
    assert same == sum(a == b for a, b in zip(*keys, strict=True))
    for here, there in ((left, right), (right, left)):
        for move in here.moves:
            if move.elsewhere is not None:
                twin = there.moves[move.elsewhere - 1]
                assert twin.card.hit.entity_key == move.card.hit.entity_key
                assert move.by == -twin.by


def test_the_other_side_has_its_own_errors(inspector: Client, index: TestIndex) -> None:
    load_file(index)
    page = text_of(inspector, COMPARE, status=400, query="limit", against_fusion="bm25")
    at_field = re.search(r'id="error_against_fusion">(.*?)</ul>', page, re.DOTALL)
    assert at_field and "Must be one of: rrf, dense_only, sparse_only" in at_field[1]


def test_all_rows_of_an_entity_are_listed_page_by_page(inspector: Client, index: TestIndex) -> None:
    index.load([row(f"c:{n:03}", type="issue_comment", number=7, author="a") for n in range(70)])
    page = text_of(inspector, ROWS, key="thread:acme/app:7", query="limit")
    first = set(re.findall(r"c:\d\d\d(?=</code>)", page))
    [url] = re.findall(r'href="(\?[^"]*cursor=[^"]*)"', page)
    second = set(
        re.findall(r"c:\d\d\d(?=</code>)", text_of(inspector, ROWS + url.replace("&amp;", "&")))
    )
    assert len(first) == 50 and len(second) == 20 and not first & second


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 400), ({"key": "x"}, 400), ({"key": "thread:a/b:1\0"}, 400),
        ({"key": "thread:a/b:1"}, 404), ({"key": "thread:acme/app:1", "cursor": "x"}, 400),
    ],
)  # fmt: skip
def test_an_entity_that_is_none_is_refused(
    inspector: Client, index: TestIndex, query: dict[str, str], status: int
) -> None:
    load_file(index)
    assert "errornote" in text_of(inspector, ROWS, status, **query)


# --- Take it away --------------------------------------------------------------------------------


def test_a_shell_reads_the_curl_line_as_it_was_meant() -> None:
    query = 'it\'s "$(id)" `id` \\ \u202e!\n-- 委譲'
    line = exports.curl("http://h/api/search", Parameters((("query", query), ("top_k", "3"))))
    assert "\u202e" not in line and "\n" not in line and "委譲" in line
    script = f'curl() {{ printf "%s\\0" "$@"; }}; TOKEN=secret; {line}'
    words = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    arguments = words.decode().split("\0")
    assert json.loads(arguments[arguments.index("--data-raw") + 1]) == {"query": query, "top_k": 3}
    assert "Authorization: Token secret" in arguments
    assert shlex.split(line)[0] == "curl"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", " =", "＝"])
def test_a_cell_that_a_spreadsheet_would_run_is_text(start: str) -> None:
    assert exports.neutral(f"{start}1+1") == f"'{start}1+1"
    assert exports.neutral(-0.5) == -0.5
    assert exports.neutral("a=1") == "a=1"


def test_the_rows_come_as_csv(inspector: Client, index: TestIndex) -> None:
    load_file(index)
    index.load([row("=1+1", type="diff", file_path="@a", commit_sha="abc1234", content="limit")])
    parameters = {"query": "limit rounds", "top_k": 2}
    result = ask("limit rounds", top_k=2)
    body = text_of(inspector, CSV, part="rows", **parameters)
    assert body.startswith("\ufeff")
    table = list(csv.DictReader(io.StringIO(body.lstrip("\ufeff"))))
    assert [r["vector_id"].lstrip("'") for r in table] == [
        placed.ranked.vector_id for placed in result.trace.pool
    ]
    assert "'=1+1" in {r["vector_id"] for r in table} and "'@a" in {r["path"] for r in table}
    assert [r["place"] for r in table] == [str(n + 1) for n in range(len(table))]
    others = text_of(inspector, CSV, part="others", **parameters)
    table = list(csv.DictReader(io.StringIO(others.lstrip("\ufeff"))))
    assert [r["vector_id"] for r in table] == [
        other.ranked.vector_id for hit in result.hits for other in hit.others
    ]
    response = inspector.get(CSV, {**parameters, "top_k": 99})
    assert response.status_code == 302 and response["Location"].startswith(PAGE)


# --- Strangers' text -----------------------------------------------------------------------------


def load_hostile(index: TestIndex) -> None:
    index.load(
        [
            row(f"h:{n}", number=n + 1, title=text, content=f"limit {text}", labels=[text[:200]],
                milestone=text[:100], embedding=at(n / 10))
            for n, text in enumerate(HOSTILE)
        ]
        + [
            row("h:p", type="diff", file_path="a/<svg onload=1>.md", commit_sha="abc1234",
                content="limit </script>", embedding=at(0.05)),
            row("h:q<b>'\"", type="doc", doc_path="a/<svg onload=1>.md", content="limit",
                embedding=at(0.06)),
        ]
    )  # fmt: skip


def pages(index: TestIndex) -> list[tuple[str, dict[str, Any]]]:
    load_hostile(index)
    return [
        (PAGE, {"query": f"limit {HOSTILE[0]}", "top_k": 20, "why": HOSTILE[0]}),
        (PAGE, {"query": "limit", "why": "h:q<b>'\""}),
        (PAGE, {"query": "limit", "type": HOSTILE[0], "since": HOSTILE[0], HOSTILE[0]: "1"}),
        (COMPARE, {"query": HOSTILE[1], "against_fusion": HOSTILE[0]}),
        (COMPARE, {"query": "limit"}),
        (ROWS, {"key": "file:acme/app:a/<svg onload=1>.md", "query": HOSTILE[0]}),
        (ROWS, {"key": HOSTILE[0]}),
        ("/admin/ingest_readonly/searchdoc/", {"q": HOSTILE[0]}),
        ("/admin/ingest_readonly/searchdoc/", {}),
        ("/admin/ingest_readonly/searchdoc/h_3A0/change/", {}),
        ("/admin/ingest_readonly/searchdoc/h_3Ap/change/", {}),
        ("/admin/ingest_readonly/docedge/", {}),
        ("/admin/ingest_readonly/indexinfo/", {}),
    ]


def test_strangers_text_is_text(root: Client, index: TestIndex) -> None:
    for url, query in pages(index):
        page = root.get(url, query).content.decode()
        for raw in ("<img src=x", "<svg onload", "<script>alert", "h:q<b>"):
            assert raw not in page, (url, raw)
    shown = text_of(root, PAGE, query="limit", top_k=20)
    assert "{{7*7}}{% debug %}" in shown
    assert "&quot;&gt;&lt;img src=x onerror=alert(1)&gt;" in shown
    assert "a/&lt;svg onload=1&gt;.md" in shown


class Policy(HTMLParser):
    """Collects what the content security policy refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        if tag == "style" or (tag == "script" and "src" not in names):
            self.refused.append((tag, None))
        self.refused += [(tag, n) for n in names if n == "style" or n.startswith("on")]


def test_nothing_on_a_page_needs_a_looser_policy(root: Client, index: TestIndex) -> None:
    for url, query in pages(index):
        policy = Policy()
        policy.feed(root.get(url, query).content.decode())
        assert policy.refused == [], url


def test_every_link_away_is_https_and_keeps_no_reference(root: Client, index: TestIndex) -> None:
    load_hostile(index)
    page = text_of(root, PAGE, query="limit", top_k=20)
    away = re.findall(r"<a [^>]*href=\"(?![/?#])([^\"]*)\"([^>]*)>", page)
    assert away
    for href, rest in away:
        assert href.startswith("https://github.com/")
        assert 'rel="noopener noreferrer"' in rest


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "//evil", "", "vbscript:x", "http://[bad"]
)
def test_only_web_addresses_become_links(url: str) -> None:
    assert web_address(url) == ""


# --- Browsing ------------------------------------------------------------------------------------

LIST = "/admin/ingest_readonly/searchdoc/"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("acme/app#3", {"i:2"}),
        ("#3", {"i:2"}),
        ("3", {"i:2"}),
        ("1a1b2c3", {"c:1"}),
        ("rules/limit.md", {"c:0", "c:1", "c:2", "d:1"}),
        ("acme/app:rules/limit.md", {"c:0", "c:1", "c:2", "d:1"}),
        ("other/app:rules/limit.md", set()),
        ("i:4", {"i:4"}),
        ("acme/app", {"c:0", "c:1", "c:2", "d:1", "i:0", "i:1", "i:2", "i:3", "i:4"}),
        ("nothing", set()),
        ("99999999999999999999", set()),
    ],
)
def test_a_search_of_the_list_is_read_as_what_it_names(
    root: Client, index: TestIndex, text: str, found: set[str]
) -> None:
    load_file(index)
    page = text_of(root, LIST, q=text)
    assert set(re.findall(r'class="field-id">([^<]*)<', page)) == found


def test_a_list_counts_no_further_than_it_pages(
    root: Client, index: TestIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ingest_readonly.browsing import BoundedPaginator

    load_file(index)
    monkeypatch.setattr(BoundedPaginator, "most", 5)
    page = text_of(root, LIST)
    assert "The list ends after 5 rows" in page


def test_a_list_reads_no_text_and_no_vector(root: Client, index: TestIndex) -> None:
    load_file(index)
    for query in ({}, {"type": "diff"}, {"q": "#3"}, {"state": "open"}, {"repo": "acme/app"}):
        with CaptureQueriesContext(connections["index"]) as statements:
            text_of(root, LIST, **query)
        assert len(statements) <= 5
        for statement in statements.captured_queries:
            assert not re.search(r'"(content|embedding|content_fts|title_fts)"', statement["sql"])
            if "COUNT(" in statement["sql"]:
                assert "LIMIT 10000" in statement["sql"]


@pytest.mark.parametrize(
    ("path", "status"),
    [("add/", 403), ("i_3A0/delete/", 403), ("../docedge/i_3A0/change/", 302)],
)
def test_there_is_no_page_that_writes(
    root: Client, index: TestIndex, path: str, status: int
) -> None:
    load_file(index)
    assert root.get(LIST + path).status_code == status


def test_an_edge_of_a_page_with_several_has_no_page(root: Client, index: TestIndex) -> None:
    edge = {"repo": "acme/app", "src_slug": "A", "dst_slug": "B", "edge_kind": "mention",
            "updated_at": None, "src_vector_id": "w:0"}  # fmt: skip
    index.load([row("w:0", type="wiki_doc", doc_path="A")],
               [{**edge, "dst_vector_id": f"w:{n}"} for n in (1, 2)])  # fmt: skip
    response = root.get("/admin/ingest_readonly/docedge/w_3A0/change/")
    assert response.status_code == 302


@pytest.mark.parametrize("path", [LIST, LIST + "i_3A0/change/", "/admin/ingest_readonly/docedge/"])
def test_a_post_changes_nothing(root: Client, index: TestIndex, path: str) -> None:
    load_file(index)
    before = index.execute("SELECT count(*), max(indexed_at) FROM search_docs")
    fields = {"title": "changed", "action": "delete_selected", "_selected_action": "i:0"}
    assert root.post(path, fields).status_code == 403
    assert index.execute("SELECT count(*), max(indexed_at) FROM search_docs") == before


def test_a_row_shows_its_text_and_leads_to_its_entity(root: Client, index: TestIndex) -> None:
    load_file(index)
    page = text_of(root, LIST + "c_3A1/change/")
    assert "limit the rounds 1" in page
    assert f"{ROWS}?key=file%3Aacme%2Fapp%3Arules%2Flimit.md" in page
    assert "embedding" not in page


def test_edges_are_found_by_either_end(root: Client, index: TestIndex) -> None:
    wiki = [row(f"w:{n}", type="wiki_doc", doc_path=f"P{n}") for n in range(3)]
    edges = [
        {"src_vector_id": f"w:{a}", "dst_vector_id": f"w:{b}", "repo": "acme/app",
         "src_slug": f"P{a}", "dst_slug": f"P{b}", "edge_kind": "mention", "updated_at": None}
        for a, b in ((0, 1), (0, 2), (1, 2))
    ]  # fmt: skip
    index.load(wiki, edges)
    url = "/admin/ingest_readonly/docedge/"
    for text, count in (("P0", 2), ("w:2", 2), ("P9", 0), ("", 3)):
        page = text_of(root, url, q=text)
        assert len(re.findall(r'class="field-src_slug', page)) == count, text
