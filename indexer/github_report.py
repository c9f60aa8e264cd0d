"""What a run over GitHub did, and what it left out, by kind and by name."""

from dataclasses import dataclass, field
from typing import Final

from indexer.lexical import Probe
from indexer.records import Repairs
from indexer.store import Tally

# Names kept of a kind: enough to look at, whatever the repository's size.
_NAMES: Final = 1_000


@dataclass(slots=True)
class Kind:
    """How many items are of a kind, and the names of the first of them."""

    count: int = 0
    names: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class Notes:
    """Items that were left out or are odd, by kind. An item read again is counted once."""

    kinds: dict[str, Kind] = field(default_factory=dict)

    def add(self, kind: str, name: str) -> None:
        noted = self.kinds.setdefault(kind, Kind())
        if name in noted.names:
            return
        noted.count += 1
        if len(noted.names) < _NAMES:
            noted.names[name] = None


@dataclass(slots=True)
class GitHubReport:
    """What a run did. `called` is the name GitHub has for the repository now."""

    repo: str
    tally: Tally
    called: str = ""
    items: int = 0
    requests: int = 0
    unchanged: int = 0
    embedded: int = 0
    reused: int = 0
    probe: Probe | None = None
    notes: Notes = field(default_factory=Notes)
    repairs: Repairs = field(default_factory=Repairs)
