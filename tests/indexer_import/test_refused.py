"""What an import refuses: bad lines by their number, and vectors that do not fit altogether."""

from typing import Any

import pytest

from tests.indexer_import.conftest import VECTOR, Deployment
from tests.postgres import DIMENSIONS

BAD_VECTORS = [
    ("{", "not JSON"),
    ("[]", "not a JSON object"),
    ({"values": VECTOR}, "id is missing"),
    ({"id": 7, "values": VECTOR}, "id is missing"),
    ({"id": "i:1"}, "values is missing"),
    ({"id": "i:1", "values": "0.1"}, "values is missing"),
    ({"id": "i:1", "values": ["1"] * DIMENSIONS}, "values must be numbers"),
    ({"id": "i:1", "values": [True] * DIMENSIONS}, "values must be numbers"),
    ({"id": "i:1", "values": [10**400] * DIMENSIONS}, "NaN or infinity"),
    ('{"id": "i:1", "values": [NaN, 1]}', "NaN or infinity"),
    ({"id": "i:1", "values": [0.0] * DIMENSIONS}, "no direction"),
]


@pytest.mark.parametrize(("line", "problem"), BAD_VECTORS, ids=[p for _, p in BAD_VECTORS])
def test_a_bad_vector_is_named_and_costs_its_row_nothing(
    deployment: Deployment, line: Any, problem: str
) -> None:
    deployment.row("i:2")
    deployment.vectors.append(line)
    deployment.row("i:1", vector=None)
    code, _, err = deployment.run()
    assert code == 3
    assert "vectors.ndjson line 2: " in err and problem in err
    assert "1 bad lines were skipped; everything else is stored." in err
    assert deployment.stored("vector_id, embedding IS NULL") == [("i:1", True), ("i:2", False)]


BAD_RECORDS = [
    ({"number": 1}, "repo is missing"),
    ({"repo": "acme/app", "title": "x"}, "no column tells which table"),
    ({"repo": "acme/app", "table": "cats", "number": 1}, "table is 'cats'"),
    ({"repo": "acme/app", "number": [1]}, "number is [1]"),
    ({"repo": "acme/app", "table": "docs"}, "path is None"),
    ({"repo": "acme/\ud800", "number": 1}, "lone surrogate"),
    ({"vector_id": 5}, "vector_id must be text"),
]


@pytest.mark.parametrize(("record", "problem"), BAD_RECORDS, ids=[p for _, p in BAD_RECORDS])
def test_a_bad_record_is_named(deployment: Deployment, record: Any, problem: str) -> None:
    deployment.row("i:1")
    deployment.records.append(record)
    code, _, err = deployment.run()
    assert code == 3 and "records.ndjson line 1: " in err and problem in err
    assert deployment.stored("vector_id") == [("i:1",)]


BAD_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"repo": ""}, "repo is missing"),
    ({"type": "mystery"}, "type is 'mystery'"),
    ({"number": "many"}, "number must be an integer"),
    ({"number": -1}, "between 0 and"),
    ({"number": 1.5}, "must be an integer"),
    ({"repo": "x" * 400}, "repo is longer than 300 bytes"),
    ({"doc_path": "日" * 700}, "doc_path is longer than 2,000 bytes"),
    ({"labels": "x" * 3_000}, "one of labels is longer"),
]


@pytest.mark.parametrize(("fields", "problem"), BAD_ROWS, ids=[p for _, p in BAD_ROWS])
def test_a_bad_row_is_named_by_its_line(
    deployment: Deployment, fields: dict[str, Any], problem: str
) -> None:
    deployment.row("i:1")
    deployment.row("i:2", **fields)
    deployment.row("i:3")
    code, _, err = deployment.run()
    assert code == 3 and problem in err
    lines = (deployment.folder / "export.sql").read_text().split("\n")
    number = next(n for n, line in enumerate(lines, 1) if "VALUES('i:2'" in line)
    assert f"export.sql line {number}: " in err
    assert deployment.stored("vector_id") == [("i:1",), ("i:3",)]


REFUSED: list[tuple[list[Any], dict[str, Any], str]] = [
    ([[1.0] * 8], {}, "the index holds 384-dimensional vectors"),
    ([VECTOR], {"model": "other/model"}, "vectors of other/model. Nothing was written"),
    ([VECTOR, [1.0] * 8], {}, "vectors.ndjson line 2: a vector of 8 dimensions, where 384"),
    ([VECTOR], {"dimensions": 8}, "line 1: a vector of 384 dimensions, where 8"),
    ([[1.0] * 4_001], {}, "at most 4,000 fit"),
    ([], {}, "there is no usable vector; give --dimensions"),
]


@pytest.mark.parametrize(("vectors", "options", "problem"), REFUSED, ids=[r[2] for r in REFUSED])
def test_vectors_that_do_not_fit_are_refused_before_anything_is_written(
    deployment: Deployment, vectors: list[Any], options: dict[str, Any], problem: str
) -> None:
    deployment.row("i:1")
    deployment.run()
    before = deployment.stored("*", "index_info")
    deployment.row("i:2", vector=None)
    deployment.vectors = [{"id": f"i:{n}", "values": v} for n, v in enumerate(vectors)]
    code, _, err = deployment.run(**options)
    assert code == 1 and problem in err
    assert deployment.stored("vector_id") == [("i:1",)]
    assert deployment.stored("*", "index_info") == before
