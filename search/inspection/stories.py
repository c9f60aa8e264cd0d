"""Why is it (not) here, in sentences."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from search import why
from search.inspection.answer import web_address
from search.standing import Standing
from search.types import RANKERS
from search.why import Explanation, RowStory


@dataclass(frozen=True, slots=True)
class RankerView:
    """One ranker's figures for one row; `note` stands where it has none."""

    ranker: str
    rank: int | None
    score: float | None
    ranked: int | None
    note: str


@dataclass(frozen=True, slots=True)
class Told:
    """One row's story as the page tells it."""

    story: RowStory
    url: str
    verdict: str
    views: list[RankerView]
    rerank: str


@dataclass(frozen=True, slots=True)
class Account:
    """The whole answer of the box."""

    explanation: Explanation
    headline: str
    rows: list[Told]
    untold: int


def told(explanation: Explanation) -> Account:
    """Return an explanation in sentences."""
    rows = [_told(story, explanation) for story in explanation.stories]
    return Account(explanation, _headline(explanation, rows), rows, explanation.rows - len(rows))


def _headline(explanation: Explanation, rows: list[Told]) -> str:
    if explanation.meaning is None:
        return (
            "This names nothing that could be in the index: give a GitHub address, a row's id, "
            "owner/repo#12 or owner/repo:path."
        )
    if not rows:
        return (
            f"The index holds nothing under this name; it was read as {explanation.meaning}. Also "
            "understood, with the repository's name spelt exactly: an address on GitHub, "
            "owner/repo#12, owner/repo:path, owner/repo@sha."
        )
    if len(rows) == 1:
        return rows[0].verdict
    return f"{explanation.rows} rows in the index. What became of the best: {rows[0].verdict}"


def _told(story: RowStory, explanation: Explanation) -> Told:
    by_name = {standing.ranker: standing for standing in explanation.standings}
    return Told(
        story=story,
        url=web_address(story.url),
        verdict=_VERDICTS[story.stage](story, explanation),
        views=[_view(n, story, by_name, explanation.uncounted) for n in RANKERS],
        rerank=_rerank(story),
    )


def _view(
    ranker: str,
    story: RowStory,
    standings: Mapping[str, Standing],
    uncounted: Mapping[str, str],
) -> RankerView:
    if place := story.places.get(ranker):
        return RankerView(ranker, place.rank, place.score, standings[ranker].ranked, "")
    if ranker in uncounted:
        return RankerView(ranker, None, None, None, f"not counted: {uncounted[ranker]}")
    if ranker not in standings:
        return RankerView(ranker, None, None, None, "took no part")
    if story.excluded_by:
        return RankerView(ranker, None, None, standings[ranker].ranked, "filtered out")
    if story.row.vector_id in standings[ranker].uncovered:
        note = "its title covers too little of the query"
        return RankerView(ranker, None, None, standings[ranker].ranked, note)
    return RankerView(ranker, None, None, standings[ranker].ranked, _ABSENT[ranker])


def _rerank(story: RowStory) -> str:
    if story.ranked is None:
        return ""
    if story.ranked.rerank_score is None:
        return "not scored"
    return f"{story.ranked.rerank_score:.4f}: {story.fused_place} → {story.final_place}"


_ABSENT: Final = {
    "dense": "no vector",
    "sparse": "no word of the query in its text",
    "title": "no word of the query in its title",
}


def _filtered(story: RowStory, _explanation: Explanation) -> str:
    names = ", ".join(story.excluded_by)
    plural = "filters" if len(story.excluded_by) > 1 else "filter"
    return f"Not here: in the index, but excluded by the {plural} {names}."


def _unranked(_story: RowStory, _explanation: Explanation) -> str:
    return "Not here: in the index and let through by the filters, but no ranker places it."


def _best(story: RowStory) -> str:
    name, place = min(story.places.items(), key=lambda item: item[1].rank)
    return f"its best place is {place.rank:,} in {name}"


def _beyond(story: RowStory, explanation: Explanation) -> str:
    return (
        f"Not here: beyond the windows that were fetched. Each ranker brings {explanation.window} "
        f"rows at a time; {_best(story)}."
    )


def _missed(story: RowStory, explanation: Explanation) -> str:
    return (
        f"Not here, though {_best(story)}, inside the window of {explanation.window}: the "
        "approximate index did not bring it."
    )


def _left_out(story: RowStory, _explanation: Explanation) -> str:
    return (
        f"Not in the pool itself ({_best(story)}), but its entity is at place "
        f"{story.entity_place} through another row."
    )


def _below(story: RowStory, _explanation: Explanation) -> str:
    return (
        f"In the pool at place {story.final_place}, but its entity is at place "
        f"{story.entity_place}: raise top_k to see it."
    )


def _folded(story: RowStory, _explanation: Explanation) -> str:
    return (
        f"Here, folded: row {story.final_place} of the pool, under the representative of "
        f"entity {story.entity_place}."
    )


def _shown(story: RowStory, _explanation: Explanation) -> str:
    return (
        f"Here: row {story.final_place} of the pool, which represents entity {story.entity_place}."
    )


_VERDICTS: Final[Mapping[str, Callable[[RowStory, Explanation], str]]] = {
    why.FILTERED: _filtered,
    why.UNRANKED: _unranked,
    why.BEYOND: _beyond,
    why.MISSED: _missed,
    why.LEFT_OUT: _left_out,
    why.BELOW: _below,
    why.FOLDED: _folded,
    why.SHOWN: _shown,
}
