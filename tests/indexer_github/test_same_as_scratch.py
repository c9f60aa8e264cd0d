"""After any history, also one that happens while it is read: the index made from scratch."""

import random

import pytest

from tests.fakes.github_api import GitHubApi, Received
from tests.indexer_github.conftest import Indexed, difference
from tests.indexer_github.test_incremental import Scratch


@pytest.mark.parametrize("seed", range(4))
def test_incremental_equals_from_scratch(
    indexed: Indexed, api: GitHubApi, scratch: Scratch, seed: int
) -> None:
    """Random operations, some of them while the listings are read."""
    chance = random.Random(seed)
    api.page_size = chance.choice([2, 3, 5])
    moves = 0

    def move(received: Received) -> None:
        nonlocal moves
        if moves and received.query and chance.random() < 0.3:
            moves -= 1
            operate(api, chance)

    api.before = move
    for step in range(6):
        for _ in range(chance.randrange(1, 20)):
            operate(api, chance)
        moves = chance.randrange(1, 6)
        indexed.run()
        moves = 0
        if step % 3 == 2:
            indexed.run()
            found = difference(indexed.rows(), scratch())
            assert not found, "\n".join(map(str, found))


def operate(api: GitHubApi, chance: random.Random) -> None:
    """Do something that a repository's people do."""
    api.tick(chance.choice([0, 0, 1, 60, 4000]))
    numbers = list(api.issues)
    pulls = [number for number in numbers if "pull_request" in api.issues[number]]
    bodies = ["A body that is long enough", "short", None, "Another body that is long enough"]
    what = chance.randrange(9)
    if what == 0 or not pulls:
        api.issue(f"Title {chance.random()}", chance.choice(bodies), pull=chance.random() < 0.6)
    elif what == 1:
        api.edit(chance.choice(numbers), body=chance.choice(bodies), state="closed")
    elif what == 2:
        api.comment(chance.choice(numbers), chance.choice(bodies))
    elif what == 3:
        api.review(chance.choice(pulls), chance.choice(bodies))
    elif what == 4:
        api.inline_comment(chance.choice(pulls), chance.choice(bodies) or "")
    elif what == 5 and api.comments:
        key = chance.choice(list(api.comments))
        api.comments[key] |= {"body": chance.choice(bodies), "updated_at": api.tick()}
    elif what == 6 and api.inline:
        key = chance.choice(list(api.inline))
        api.inline[key] |= {"body": chance.choice(bodies), "updated_at": api.tick(), "line": None}
    elif what == 7:
        api.release(f"v{len(api.releases)}-{chance.random()}")
    elif api.releases:
        one = chance.choice(api.releases)
        if chance.random() < 0.5:
            api.releases.remove(one)
        else:
            one["body"] = chance.choice(bodies)
