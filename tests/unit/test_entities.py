"""The line between the thing a row points at and the work that produced the row."""

import pytest

from search.entities import collapse, entity_key
from search.types import Candidate, RankedRow


def candidate(vector_id: str, **fields: object) -> Candidate:
    defaults = {"repo": "acme/app", "type": "diff", "number": 0, "doc_path": "", "file_path": ""}
    return Candidate(vector_id=vector_id, score=0.0, **{**defaults, **fields})  # type: ignore[arg-type]


def folded(*candidates: Candidate) -> list[list[str]]:
    entities = collapse(RankedRow(c, 0.0, {}, {}) for c in candidates)
    return [[e.representative.vector_id, *(o.vector_id for o in e.others)] for e in entities]


def test_a_document_and_its_diffs_are_one() -> None:
    assert folded(
        candidate("c:1", file_path="docs/a.md"),
        candidate("d:1", type="doc", doc_path="docs/a.md"),
        candidate("c:2", file_path="docs/a.md"),
    ) == [["c:1", "d:1", "c:2"]]


def test_two_files_of_one_commit_are_two() -> None:
    one, two = candidate("c:1", file_path="a.md"), candidate("c:2", file_path="b.md")
    assert folded(one, two) == [["c:1"], ["c:2"]]


def test_an_issue_and_the_pull_request_that_closes_it_are_two() -> None:
    assert folded(
        candidate("i:1317", type="issue", number=1317),
        candidate("i:1318", type="pull_request", number=1318),
    ) == [["i:1317"], ["i:1318"]]


@pytest.mark.parametrize("kind", ["issue_comment", "pr_review", "pr_review_comment"])
def test_what_is_written_under_a_thread_folds_into_it(kind: str) -> None:
    thread, written = candidate("i:7", type="issue", number=7), candidate("x", type=kind, number=7)
    assert folded(written, thread) == [["x", "i:7"]]


def test_one_file_in_two_repositories_is_two() -> None:
    assert (
        len(
            folded(
                candidate("c:1", file_path="a.md"),
                candidate("c:2", repo="acme/fork", file_path="a.md"),
            )
        )
        == 2
    )


@pytest.mark.parametrize("kind", ["wiki_doc", "release", "something_new"])
def test_wiki_pages_releases_and_unknown_types_never_fold(kind: str) -> None:
    rows = [
        candidate(f"w:{n}", type=kind, number=3, doc_path="Home", file_path="Home") for n in (1, 2)
    ]
    assert len(folded(*rows, candidate("d:1", type="doc", doc_path="Home"))) == 3


@pytest.mark.parametrize(
    "fields",
    [{"type": "doc"}, {"type": "diff"}, {"type": "issue"}, {"type": "issue_comment"}],
)
def test_a_row_without_its_key_field_never_folds(fields: dict[str, str]) -> None:
    assert len(folded(candidate("x:1", **fields), candidate("x:2", **fields))) == 2


def test_the_newest_version_does_not_take_the_place() -> None:
    old, new = candidate("c:old", file_path="a.md"), candidate("c:new", file_path="a.md")
    assert folded(old, new)[0][0] == "c:old"


def test_a_colon_in_a_path_makes_no_other_key() -> None:
    keys = {
        entity_key(vector_id="v", repo="a/b", type="doc", number=0, doc_path="c:d", file_path=""),
        entity_key(vector_id="v", repo="a/b:c", type="doc", number=0, doc_path="d", file_path=""),
    }
    assert keys == {"file:a/b:c:d"}, "GitHub allows no colon in a repository's name"
