"""Rows of GitHub's items: issues, pull requests, comments, reviews, releases.

Whatever an item lacks, its row is made of the rest; an item that cannot have a row says why.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from indexer.errors import BadRecord
from indexer.git_history import vector_id
from indexer.github_report import Notes
from indexer.records import Repairs, clean

LEAST_COMMENT: Final = 10  # characters; "LGTM" and "+1" say nothing to a search
_NUMBER_AT_END: Final = re.compile(r"/(\d{1,10})/?$")
_EARLIEST_YEAR: Final = 1970
_LATEST_YEAR: Final = 9998
_WITHOUT_AUTHOR: Final = "item without an author, stored so"

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Item:
    """An item that was read: the id of its row, and the record or why there is none.

    An id goes with `left_out` where a row that an earlier version of the item had must go.
    """

    name: str
    vector_id: str = ""
    record: dict[str, Any] | None = None
    left_out: str = ""


Maker = Callable[[str, Json, Notes], Item]


def issue(repo: str, data: Json, notes: Notes) -> Item:
    """Return the row of an issue or pull request, from either listing; raises BadRecord."""
    number = _integer(data, "number")
    pull = bool(data.get("pull_request")) or "head" in data
    name = f"{'pull request' if pull else 'issue'} #{number}"
    title, body = _text(data, "title"), _text(data, "body")
    record = {
        "type": "pull_request" if pull else "issue",
        "state": _text(data, "state"),
        "labels": _names(data.get("labels"), "name"),
        "milestone": _text(data, "milestone", "title"),
        "assignees": _names(data.get("assignees"), "login"),
        "created_at": _time(data, "created_at", name, notes),
        "updated_at": _time(data, "updated_at", name, notes),
        "number": number,
        "title": title,
        "content": _joined(title, body),
    }
    return _item(name, issue_id(repo, number), repo, record)


def issue_id(repo: str, number: int) -> str:
    """Return the id of the row of an issue or pull request."""
    return vector_id("i", repo, str(number))


def issue_comment(repo: str, data: Json, notes: Notes) -> Item:
    """Return the row of a comment on an issue or pull request; raises BadRecord."""
    identity = _integer(data, "id")
    name = f"issue comment {identity}"
    fields = {
        "type": "issue_comment",
        "state": "active",
        "created_at": _time(data, "created_at", name, notes),
        "updated_at": _time(data, "updated_at", name, notes),
        "number": _number_in(data, "issue_url"),
        "comment_id": identity,
    }
    return _said(name, vector_id("ic", repo, str(identity)), repo, data, fields, notes)


def inline_comment(repo: str, data: Json, notes: Notes) -> Item:
    """Return the row of a review comment on a line; raises BadRecord.

    An outdated one keeps the line it was written on.
    """
    identity = _integer(data, "id")
    name = f"inline comment {identity}"
    line = data.get("line")
    if line is None:
        line = data.get("original_line")
        notes.add("outdated inline comment, stored with its original line", name)
    fields = {
        "type": "pr_review_comment",
        "state": "active",
        "created_at": _time(data, "created_at", name, notes),
        "updated_at": _time(data, "updated_at", name, notes),
        "number": _number_in(data, "pull_request_url"),
        "comment_id": identity,
        "commit_sha": _text(data, "commit_id"),
        "file_path": _text(data, "path"),
        "line": line,
    }
    return _said(name, vector_id("pc", repo, str(identity)), repo, data, fields, notes)


def review(repo: str, data: Json, notes: Notes) -> Item:
    """Return the row of a review, which must hold the `number` of its pull request.

    Raises BadRecord.
    """
    identity = _integer(data, "id")
    name = f"review {identity} of #{_integer(data, 'number')}"
    state = _text(data, "state")
    key = vector_id("pv", repo, str(identity))
    if state == "PENDING":  # only its author can see it
        return Item(name, key, left_out="review that is not submitted")
    submitted = _time(data, "submitted_at", name, notes)
    fields = {
        "type": "pr_review",
        "state": state,
        "created_at": submitted,
        "updated_at": submitted,
        "number": data["number"],
        "review_id": identity,
    }
    return _said(name, key, repo, data, fields, notes)


def release(repo: str, data: Json, notes: Notes) -> Item:
    """Return the row of a release; raises BadRecord."""
    tag = clean(_text(data, "tag_name"), Repairs())
    if not tag:
        raise BadRecord("tag_name is missing or empty")
    name = f"release {tag}"
    if data.get("draft"):
        # Without an id: the tag of a draft may be that of a release.
        return Item(name, left_out="draft of a release")
    title = _text(data, "name") or tag
    created = _time(data, "created_at", name, notes)
    record = {
        "type": "release",
        "state": "published",
        "created_at": created,
        "updated_at": _time(data, "published_at", name, notes) or created,
        "tag_name": tag,
        "title": title,
        "content": _joined(title, _text(data, "body")),
    }
    return _item(name, vector_id("r", repo, tag), repo, record)


def moment(value: Any) -> datetime | None:
    """Return a time of the API, None where it is none."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    if not _EARLIEST_YEAR <= found.year <= _LATEST_YEAR:  # times are reckoned with
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def name_of(data: Any) -> str:
    """Return what to call an item of which no row could be made."""
    if isinstance(data, Mapping):
        for key in ("number", "id", "tag_name", "url"):
            if data.get(key) is not None:
                return f"{key} {str(data[key])[:100]!r}"
    return f"{str(data)[:60]!r}"


def _said(name: str, key: str, repo: str, data: Json, fields: dict[str, Any], notes: Notes) -> Item:
    """Return the row of something that somebody said, None of a bot's or a short one."""
    author, body = _text(data, "user", "login"), _text(data, "body")
    if author.endswith("[bot]"):
        return Item(name, key, left_out="by a bot")
    if len(body.strip()) < LEAST_COMMENT:
        return Item(name, key, left_out=f"under {LEAST_COMMENT} characters")
    if not author:
        notes.add(_WITHOUT_AUTHOR, name)
    return _item(name, key, repo, {**fields, "author": author, "content": _joined(author, body)})


def _item(name: str, key: str, repo: str, fields: dict[str, Any]) -> Item:
    return Item(name, key, {"vector_id": key, "repo": repo, **fields})


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _text(data: Any, *path: str) -> str:
    """Return the text at a path, '' where something on the way is null; raises BadRecord."""
    for key in path:
        if data is None:
            return ""
        if not isinstance(data, Mapping):
            raise BadRecord(f"{'.'.join(path)} is not where it should be")
        data = data.get(key)
    if data is None:
        return ""
    if not isinstance(data, str):
        raise BadRecord(f"{'.'.join(path)} must be text, not {type(data).__name__}")
    return data


def _names(values: Any, key: str) -> list[str]:
    """Return the names of labels or the logins of assignees; raises BadRecord."""
    if values is None:
        return []
    if not isinstance(values, list):
        raise BadRecord(f"a list of {key}s is no list")
    names = [value if isinstance(value, str) else _text(value, key) for value in values]
    return [name for name in names if name]


def _integer(data: Json, key: str) -> int:
    value = data.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadRecord(f"{key} is {str(value)[:100]!r}; it must be a number")
    return value


def _number_in(data: Json, key: str) -> int:
    """Return the number at the end of an address; raises BadRecord."""
    found = _NUMBER_AT_END.search(_text(data, key))
    if not found:
        raise BadRecord(f"{key} names no issue or pull request")
    return int(found[1])


def _time(data: Json, key: str, name: str, notes: Notes) -> str | None:
    """Return a time as the records take it; one that is missing or impossible is noted."""
    found = moment(data.get(key))
    if found is None and (data.get(key) is not None or key == "updated_at"):
        notes.add(f"{key} is missing or impossible, stored without", name)
    return found.isoformat() if found else None
