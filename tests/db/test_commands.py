"""`manage.py search` and `manage.py duplicate_rate`: what they print, and when they fail."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test.utils import override_settings
from rest_framework.test import APIClient

from search import services
from search.serializers import SearchParameters
from tests.postgres import TestIndex, edge, row

pytestmark = pytest.mark.usefixtures("first_axis")


@pytest.fixture
def first_axis() -> Iterator[None]:
    with override_settings(SEARCH_EMBEDDER="tests.embedders.FirstAxis"):
        yield


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal on which a table needs no second line."""
    monkeypatch.setenv("COLUMNS", "300")


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def rows() -> list[dict[str, Any]]:
    time = "2026-01-02T03:04:00Z"
    return [
        row("d:1", type="doc", doc_path="docs/retry.md", content="retry limit", updated_at=time),
        row("c:1", type="diff", file_path="docs/retry.md", commit_sha="abcdef1234",
            content="a longer text about the retry limit", updated_at=time),
        row("i:7", number=7, title="Why \x1b[31m[red]retry[/red]", content="retry",
            labels=["bug", "search"], updated_at=time),
        row("w:1", type="wiki_doc", doc_path="Rota", content="other", labels=["bug", "search"]),
    ]  # fmt: skip


def timeless(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "timings_ms"}


def test_a_search_is_a_readable_table(index: TestIndex) -> None:
    index.load(rows(), [edge("d:1", "w:1")])
    lines = run("search", "retry limit", "--graph-expand", "--fusion", "sparse_only").splitlines()
    assert lines[0].split() == ["#", "score", "type", "title", "repo", "updated", "folded"]
    first = lines[1].split()
    assert first[0] == "1"
    assert first[2:5] == ["doc", "docs/retry.md", "acme/app"]
    assert first[5:] == ["2026-01-02", "03:04", "+1"]
    assert lines[3].split()[:5] == ["→", "hop", "1", "wiki_doc", "Rota"]
    assert "2 results; the first 3 rows were 2 distinct things." in lines[4]


def test_titles_are_neither_markup_nor_control_codes(index: TestIndex) -> None:
    index.load(rows())
    printed = run("search", "why", "--fusion", "sparse_only")
    assert "Why ·[31m[red]retry[/red]" in printed
    assert "\x1b" not in printed


@pytest.mark.parametrize(
    ("arguments", "query_string"),
    [
        (["retry limit"], "query=retry+limit"),
        (["retry", "--top-k", "1", "--no-rerank"], "query=retry&top_k=1&rerank=false"),
        (
            ["retry", "--labels", "bug", "--labels", "search"],
            "query=retry&labels=bug&labels=search",
        ),
        (
            ["retry", "--graph-expand", "--graph-hops", "2"],
            "query=retry&graph_expand=true&graph_hops=2",
        ),
        (["retry", "--type", "all", "--include-content"], "query=retry&include_content=true"),
        (["--since", "2026-01-01T00:00:00Z"], "since=2026-01-01T00:00:00Z"),
    ],
)
def test_json_is_what_rest_answers(
    index: TestIndex, arguments: list[str], query_string: str
) -> None:
    index.load(rows(), [edge("d:1", "w:1")])
    client = APIClient()
    client.force_authenticate(User(pk=1, username="someone"))
    response = client.get(f"/api/search?{query_string}")
    assert response.status_code == 200
    assert response.json()["count"]
    printed = json.loads(run("search", *arguments, "--json"))
    assert timeless(printed) == timeless(response.json())


def test_every_parameter_is_an_option() -> None:
    from django.core.management import load_command_class

    parser = load_command_class("search", "search").create_parser("manage.py", "search")
    options = {option for action in parser._actions for option in action.option_strings}
    names = set(SearchParameters().fields) - {"query"}
    assert {f"--{name.replace('_', '-')}" for name in names} <= options


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["a", "--top-k", "x"], "top_k: Must be a whole number."),
        (["a", "--top-k", "99"], "top_k: "),
        (["a", "--type", "issues"], "type: Must be one of"),
        (["a", "--since", "yesterday"], "since: Must be a time"),
        (["a", "--repo", "x", "--repo", "y"], "repo: Is given more than once."),
        (["--page", "x"], "page: Must be a token"),
        (["a", "--page", "x"], "page: Is for scans only"),
        (["a\0"], "query: Null characters"),
        (["a", "--type", "x", "--sort", "y"], "type: .*\nsort: "),
    ],
)
def test_a_wrong_parameter_is_named(index: TestIndex, arguments: list[str], text: str) -> None:
    index.load(rows())
    with pytest.raises(CommandError, match=text):
        run("search", *arguments)


def test_an_index_that_is_not_there_is_said(index: TestIndex) -> None:
    with pytest.raises(CommandError, match="nothing has been loaded"):
        run("search", "a")


def test_content_stands_below_the_table(index: TestIndex) -> None:
    index.load(rows())
    printed = run("search", "retry limit", "--fusion", "sparse_only", "--include-content")
    assert "docs/retry.md ──" in printed
    assert "\nretry limit" in printed


def test_a_scan_says_how_to_go_on(index: TestIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    index.load([row(f"i:{n}", number=n, updated_at=f"2026-01-0{n}T00:00:00Z") for n in (1, 2, 3)])
    since = ["--since", "2026-01-01T00:00:00Z"]
    printed = run("search", *since, "--top-k", "2")
    assert "2 rows since 2026-01-01 00:00, UTC." in printed
    page = printed.rpartition("--page ")[2].strip()
    rest = run("search", *since, "--page", page)
    assert "i:1" in rest
    assert "There are more" not in rest


def test_what_went_wrong_and_what_matched_nothing_is_printed(index: TestIndex) -> None:
    index.load(rows())
    with override_settings(SEARCH_EMBEDDER="tests.embedders.Down"):
        printed = run("search", "retry", "--repo", "app")
    assert "No row has repo “app”. Near: acme/app." in printed
    assert "Degraded: dense: the embedding server refused the connection" in printed
    assert "Incomplete: " in printed


# --- duplicate_rate -------------------------------------------------------------------------------


def duplicates() -> list[dict[str, Any]]:
    """Six diffs of one file that answer best, and four other things."""
    diffs = [
        row(f"c:{n}", type="diff", file_path="a.md", commit_sha=f"{n}", content="retry retry")
        for n in range(6)
    ]
    others = [row(f"i:{n}", number=n, content=f"some retry {'x ' * n}") for n in range(1, 5)]
    return [*diffs, *others]


def queries(tmp_path: Path, text: str) -> str:
    path = tmp_path / "queries.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_it_counts_distinct_entities_before_and_after(index: TestIndex, tmp_path: Path) -> None:
    index.load(duplicates())
    file = queries(tmp_path, "\ufeffretry\n\n  retry  \nnothing of that\n")
    with override_settings(SEARCH_EMBEDDER="tests.embedders.FirstAxis"):
        printed = json.loads(
            run("duplicate_rate", "--queries", file, "--top-k", "5", "--json", "--fail-under", "1")
        )
    nothing = {"rows": 0, "entities": 0, "share": None}
    before = {"rows": 5, "entities": 1, "share": 0.2}
    after = {"rows": 5, "entities": 5, "share": 1.0}
    assert printed == {
        "queries": [
            {"query": "retry", "before": before, "after": after},
            {"query": "nothing of that", "before": nothing, "after": nothing},
        ],
        "total": {"before": before, "after": after},
    }
    table = run("duplicate_rate", "--queries", file, "--top-k", "5").splitlines()
    assert table[1].split() == ["retry", "1/5", "20%", "5/5", "100%"]
    assert table[3].split() == ["total", "1/5", "20%", "5/5", "100%"]


def test_it_fails_when_the_collapse_is_broken(
    index: TestIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from search.types import Entity

    index.load(duplicates())
    file = queries(tmp_path, "retry\n")
    run("duplicate_rate", "--queries", file, "--fail-under", "1")
    monkeypatch.setattr(
        services,
        "collapse",
        lambda rows: [Entity("file:acme/app:a.md", one) for one in rows],
    )
    with pytest.raises(CommandError, match=r"Below 0\.9: retry"):
        run("duplicate_rate", "--queries", file, "--fail-under", "0.9")
    run("duplicate_rate", "--queries", file)


def test_places_that_stayed_empty_count_where_the_answer_is_incomplete(
    index: TestIndex, tmp_path: Path
) -> None:
    index.load(duplicates())
    file = queries(tmp_path, "retry\n")
    with (
        override_settings(SEARCH_WINDOW=6, SEARCH_MAX_WINDOWS=1),
        pytest.raises(CommandError, match="Below"),
    ):
        run("duplicate_rate", "--queries", file, "--top-k", "5", "--fail-under", "0.9")


@pytest.mark.parametrize(
    ("content", "arguments", "text"),
    [
        (b"", [], "holds no query"),
        (b"\xff", [], "cannot be read"),
        (None, [], "cannot be read"),
        (b"a", ["--fail-under", "9"], "between 0 and 1"),
        (b"a", ["--fail-under", "nan"], "between 0 and 1"),
        (b"a", ["--top-k", "0"], "top_k: "),
        (b"a\0", [], "query: "),
        (b"a", [], "nothing has been loaded"),
    ],
)
def test_it_refuses(
    index: TestIndex, tmp_path: Path, content: bytes | None, arguments: list[str], text: str
) -> None:
    path = tmp_path / "queries.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CommandError, match=text):
        run("duplicate_rate", "--queries", str(path), *arguments)
