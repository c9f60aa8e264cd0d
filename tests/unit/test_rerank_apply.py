"""The order after reranking."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.rerank import Score, apply

SCORES = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0])


def slow_oracle(order: list[int], scores: list[Score]) -> list[int]:
    """Take the best scored item that is left, the earlier of equals, until none is."""
    left = list(zip(order, scores, strict=True))
    result = []
    while any(score is not None for _, score in left):
        best = max(score for _, score in left if score is not None)
        position = next(i for i, (_, score) in enumerate(left) if score == best)
        result.append(left.pop(position)[0])
    return result + [item for item, _ in left]


@given(st.lists(SCORES))
def test_apply_agrees_with_the_definition(scores: list[Score]) -> None:
    order = list(range(len(scores)))
    result = apply(order, scores)
    assert result == slow_oracle(order, scores)
    assert sorted(result) == order


@given(st.lists(st.none(), max_size=60))
def test_no_score_changes_nothing(scores: list[Score]) -> None:
    assert apply(range(len(scores)), scores) == list(range(len(scores)))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.1, 0.9, 0.5], "bca"),
        ([0.1, None, 0.5], "cab"),
        ([None, 0.0, None], "bac"),
        ([-1.0, None, -2.0], "acb"),
        ([0.5, 0.5, 0.5], "abc"),
    ],
)
def test_scored_rows_come_first_best_first(scores: list[Score], expected: str) -> None:
    assert "".join(apply("abc", scores)) == expected


def test_equal_items_are_kept_apart() -> None:
    assert apply(["x", "x", "y"], [0.1, None, 0.2]) == ["y", "x", "x"]


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        apply("abc", [0.1, 0.2])
