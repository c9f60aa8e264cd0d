"""The parity table: it names tests that exist, and leaves nothing of the answers out."""

import ast
import re
from functools import cache

import pytest
from rest_framework import serializers

from search.serializers import ListedRow, ScanResponse, SearchParameters, SearchResponse
from search.serializers.response import SearchHit
from tests.postgres import BASE_DIR

PAGE = (BASE_DIR / "docs" / "parity.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("| the reference |", "|---"))
]
NAMES = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


@cache
def functions(path: str) -> set[str]:
    tree = ast.parse((BASE_DIR / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("cells", ROWS, ids=lambda cells: cells[0][:40])
def test_each_feature_is_held_by_a_test(cells: list[str]) -> None:
    feature, here, held_by = cells
    assert feature
    assert here
    assert re.fullmatch(r"(`tests/[\w/]+\.py::test_\w+`(, )?)+", held_by)


@pytest.mark.parametrize(("path", "name"), NAMES)
def test_a_named_test_exists(path: str, name: str) -> None:
    assert name in functions(path)


@pytest.mark.parametrize(
    "serializer", [SearchParameters, SearchResponse, SearchHit, ScanResponse, ListedRow]
)
def test_every_parameter_and_field_is_named(
    serializer: type[serializers.Serializer[object]],
) -> None:
    assert [name for name in serializer().fields if f"`{name}`" not in PAGE] == []
