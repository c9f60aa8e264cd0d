"""A wiki's pages by slug, and the mentions between them."""

from pathlib import Path

import pytest

from indexer.git_history import vector_id
from indexer.github_report import GitHubReport
from indexer.records import Repairs
from indexer.store import Tally
from indexer.wiki import WikiPage, mentions
from tests.indexer_git.repository import GitRepository
from tests.indexer_github.conftest import NAME, Indexed


@pytest.fixture
def wiki(tmp_path: Path) -> GitRepository:
    return GitRepository(tmp_path / "app.wiki")


def test_pages_and_mentions(indexed: Indexed, wiki: GitRepository) -> None:
    wiki.write("On call rota.md", "日本語 and [[Home]]")
    wiki.write("sub/Deep-Page.rst", "deep")
    wiki.write("_Sidebar.md", "[[Home]] [[Nobody]]")
    wiki.write("picture.png", b"\x89PNG")
    wiki.commit(Home_md="See [the rota](On-call-rota#night), [[deep|deep page]], [[Nowhere yet]].")
    report = indexed.run(wiki=wiki.path)
    assert indexed.one(
        "vector_id, state, wiki_extension, title, content, updated_at = created_at",
        doc_path="On-call-rota",
    ) == (
        vector_id("w", NAME, "On-call-rota"),
        "active",
        "md",
        "On-call-rota",
        "On-call-rota\n\n日本語 and [[Home]]",
        True,
    )
    assert indexed.one("wiki_extension", doc_path="Deep-Page") == ("rst",)
    assert [edge[2:4] for edge in indexed.edges()] == [
        ("Home", "Deep-Page"),
        ("Home", "Nowhere-yet"),
        ("Home", "On-call-rota"),
        ("On-call-rota", "Home"),
    ]
    assert indexed.noted(report) == {"left out: sidebar, header or footer of the wiki": 1}


def test_what_is_gone_goes_and_nothing_new_is_nothing(
    indexed: Indexed, wiki: GitRepository, tmp_path: Path
) -> None:
    wiki.commit(Home_md="[[Old]] and [[Kept]]", Old_md="[[Home]]", Kept_md="nothing")
    bare = wiki.clone(tmp_path / "bare.wiki.git", "--bare")
    indexed.run(wiki=bare)
    before = indexed.rows()
    assert indexed.run(wiki=bare).tally.unchanged == 0
    assert indexed.rows() == before
    indexed.run()  # without the wiki, its rows stay
    assert indexed.rows() == before
    (wiki.path / "Old.md").unlink()
    wiki.commit(Home_md="[[Kept]]")
    indexed.run(wiki=wiki.path)
    assert {row[11] for row in indexed.rows()} == {"Home", "Kept"}
    assert [edge[2:4] for edge in indexed.edges()] == [("Home", "Kept")]


def test_two_files_of_one_slug_and_odd_files(indexed: Indexed, wiki: GitRepository) -> None:
    wiki.write("archive/home.md", "the old one")
    wiki.write("A+B.md", "plus")
    wiki.write("A B.md", "space")
    wiki.write("binary.md", b"\0\1")
    wiki.write("latin.md", "é".encode("latin-1"))
    (wiki.path / "link.md").symlink_to("/etc/passwd")
    wiki.commit(Home_md="the one that is shown")
    report = indexed.run(wiki=wiki.path)
    assert indexed.contents("wiki_doc") == {
        "Home\n\nthe one that is shown",
        "A-B\n\nspace",
        "latin\n\né",
    }
    assert report.notes.kinds["left out: wiki page whose name another page has"].count == 2
    assert report.notes.kinds["left out: binary file named as a wiki page"].count == 1
    assert report.repairs.counts["symbolic link skipped as a document"] == 1


PAGES = ("Home", "Node.js", "FAQ", "v1.0", "設計")


@pytest.mark.parametrize(
    ("text", "slugs"),
    [
        ("[[FAQ]]", ["FAQ"]),
        ("[[the faq|faq]] [[FAQ#part]]", ["FAQ"]),
        ("[[設計]] [[Node.js]] [[v1.0]]", ["設計", "Node.js", "v1.0"]),
        ('[a](FAQ) [b](./FAQ.md) [c](FAQ#x "title") [d](../wiki/FAQ) [e](<FAQ>)', ["FAQ"]),
        ("[a](https://github.com/acme/app/wiki/FAQ)", ["FAQ"]),
        ("[a](/acme/app/wiki/FAQ)", ["FAQ"]),
        ("[a](%E8%A8%AD%E8%A8%88)", ["設計"]),
        ("[a](Missing-Page) [[Another missing]]", ["Another-missing", "Missing-Page"]),
        ("[a](https://example.com/wiki/FAQ) [b](https://github.com/acme/other/wiki/FAQ)", []),
        ("[a](mailto:x@example.com) [b](#FAQ) [c](/FAQ) [d](src/FAQ) [e](picture.png)", []),
        ("![FAQ](FAQ) [[picture.png]] [[https://example.com]] [[]] [[|]] [a]()", []),
        ("`[[FAQ]]` and ``[[FAQ]] ` ``\n\n```\n[[FAQ]]\n```\n\n~~~ x\n[[FAQ]]", []),
        ("[[Home]] [home](home)", []),
        ("[x](http://[) [y](%ff) [[\ud800]]", ["\ufffd"]),
    ],
)
def test_mentions(text: str, slugs: list[str]) -> None:
    pages = {slug: WikiPage(slug, "md", "", None) for slug in PAGES}
    pages["Home"] = WikiPage("Home", "md", text.replace("\ud800", "\ufffd"), None)
    found = [edge["dst_slug"] for edge in mentions(NAME, pages, GitHubReport(NAME, Tally()))]
    assert found == slugs


def test_hostile_text_takes_no_time() -> None:
    for unit in ("`", "[[", "](", "[a](", "```\n", "` `` ", "[" * 3 + "]("):
        text = unit * (32_768 // len(unit))
        pages = {"Home": WikiPage("Home", "md", text, None)}
        assert len(list(mentions(NAME, pages, GitHubReport(NAME, Tally(), repairs=Repairs())))) <= 1
