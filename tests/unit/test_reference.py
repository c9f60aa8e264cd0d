"""Fusion, keys, groups and segmentation equal the reference's, on its own recorded values."""

import json
from pathlib import Path
from typing import Any

import pytest

from search.entities import collapse, entity_key
from search.fusion import reciprocal_rank_fusion
from search.normalise import segment
from search.types import Candidate, RankedRow

DATA = Path(__file__).resolve().parent.parent / "data"
POOLS = [json.loads(line) for line in (DATA / "collapse_vectors.jsonl").read_text().splitlines()]
SEGMENTS = [json.loads(line) for line in (DATA / "segment_vectors.jsonl").read_text().splitlines()]
KEY_FIELDS = ("vector_id", "repo", "type", "number", "doc_path", "file_path")


def test_all_recorded_values_are_here() -> None:
    assert (len(POOLS), len(SEGMENTS)) == (60, 20)


@pytest.mark.parametrize("pool", POOLS)
def test_fusion_order_scores_and_ranks(pool: dict[str, Any]) -> None:
    fused = reciprocal_rank_fusion({"dense": pool["dense"], "sparse": pool["sparse"]})
    assert [
        {
            "vector_id": row.vector_id,
            "score": row.score,
            "dense_rank": row.ranks.get("dense"),
            "sparse_rank": row.ranks.get("sparse"),
        }
        for row in fused
    ] == pool["fused"]


@pytest.mark.parametrize("pool", POOLS)
def test_entity_keys(pool: dict[str, Any]) -> None:
    keys = {r["vector_id"]: entity_key(**{f: r[f] for f in KEY_FIELDS}) for r in pool["rows"]}
    assert keys == pool["entity_keys"]


@pytest.mark.parametrize("pool", POOLS)
def test_groups(pool: dict[str, Any]) -> None:
    rows = {
        r["vector_id"]: Candidate(score=0.0, **{f: r[f] for f in KEY_FIELDS}) for r in pool["rows"]
    }
    entities = collapse(RankedRow(rows[f["vector_id"]], f["score"], {}, {}) for f in pool["fused"])
    assert [
        {
            "key": e.key,
            "representative": e.representative.vector_id,
            "others": [other.vector_id for other in e.others],
        }
        for e in entities
    ] == pool["groups"]


@pytest.mark.parametrize("case", SEGMENTS, ids=lambda case: case["text"])
def test_segmentation(case: dict[str, str]) -> None:
    assert " ".join(segment(case["text"])) == case["segmented"]
