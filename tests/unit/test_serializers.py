"""Input → error and input → request, over JSON values, query strings and bodies."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rest_framework.exceptions import ParseError

from search.serializers import ValidationError, messages_by_field, to_request
from search.serializers.wire import MAX_BODY_BYTES, StrictJSONParser, from_query_string
from search.types import FUSIONS, ROW_TYPES, SORTS, STATES, Filters, SearchRequest

ERRORS: list[tuple[dict[str, Any], str, str]] = [
    ({"query": None}, "query", "null"),
    ({"query": 7}, "query", "Must be a string"),
    ({"query": ["a"]}, "query", "Must be a string"),
    ({"query": "a\0b"}, "query", "Null characters"),
    ({"query": "a\ud800b"}, "query", "Surrogate"),
    ({"query": "x" * 8001}, "query", "8000"),
    ({"query": "a", "topk": 5}, "topk", "Did you mean top_k?"),
    ({"query": "a", "top-k": 5}, "top-k", "Did you mean top_k?"),
    ({"query": "a", "label": []}, "label", "Did you mean labels?"),
    ({"query": "a", "zzz": 1}, "zzz", "Known: query, repo, type"),
    ({"query": "a", "\ud800": 1}, "\\ud800", "Unknown parameter"),
    ({"query": "a", "repo": "r" * 201}, "repo", "200"),
    ({"query": "a", "repo": ""}, "repo", "blank"),
    ({"query": "a", "repo": "\0"}, "repo", "Null characters"),
    ({"query": "a", "repo": {"a": 1}}, "repo", "Must be a string"),
    ({"query": "a", "type": "issues"}, "type", "Did you mean issue?"),
    ({"query": "a", "type": "\ud800"}, "type", "Must be one of: issue, pull_request"),
    ({"query": "a", "type": ["issue"]}, "type", "Must be one of"),
    ({"query": "a", "state": "approved"}, "state", "Did you mean APPROVED?"),
    ({"query": "a", "labels": "bug"}, "labels", "list"),
    ({"query": "a", "labels": {"a": 1}}, "labels", "list"),
    ({"query": "a", "labels": [1]}, "labels", "Must be a string"),
    ({"query": "a", "labels": ["ok", " "]}, "labels", "blank"),
    ({"query": "a", "labels": ["x\0"]}, "labels", "Null characters"),
    ({"query": "a", "labels": ["x"] * 21}, "labels", "20"),
    ({"query": "a", "milestone": True}, "milestone", "Must be a string"),
    ({"query": "a", "assignee": 1.5}, "assignee", "Must be a string"),
    ({"query": "a", "since": "yesterday"}, "since", "ISO 8601"),
    ({"query": "a", "since": 1700000000}, "since", "ISO 8601"),
    ({"query": "a", "since": "2026-01-31"}, "since", "2026-01-31T00:00:00Z"),
    (
        {"query": "a", "since": "2026-01-31T09:00:00"},
        "since",
        "name its zone: 2026-01-31T09:00:00Z",
    ),
    ({"query": "a", "since": "2026-01-31T09:00:00 09:00"}, "since", "%2B"),
    ({"query": "a", "until": "2026-01-31T09:00 0900"}, "until", "%2B"),
    ({"query": "a", "until": "2026-02-30T09:00:00Z"}, "until", "ISO 8601"),
    ({"query": "a", "until": "0001-01-01T00:00:00+14:00"}, "until", "out of range"),
    ({"query": "a", "until": "2026-01-31T09:00:00Z\0"}, "until", "ISO 8601"),
    ({"query": "a", "until": "２026-01-31T09:00:00Z"}, "until", "ISO 8601"),
    ({"query": "a", "top_k": 0}, "top_k", "greater than or equal to 1"),
    ({"query": "a", "top_k": 51}, "top_k", "less than or equal to 50"),
    ({"query": "a", "top_k": True}, "top_k", "whole number"),
    ({"query": "a", "top_k": "10"}, "top_k", "whole number"),
    ({"query": "a", "top_k": 10.0}, "top_k", "whole number"),
    ({"query": "a", "top_k": None}, "top_k", "null"),
    ({"query": "a", "fusion": "rff"}, "fusion", "Did you mean rrf?"),
    ({"query": "a", "sort": "updated"}, "sort", "Did you mean updated_desc?"),
    ({"query": "a", "rerank": "maybe"}, "rerank", "true or false"),
    ({"query": "a", "rerank": "true"}, "rerank", "true or false"),
    ({"query": "a", "rerank": 1}, "rerank", "true or false"),
    ({"query": "a", "rerank": None}, "rerank", "null"),
    ({"query": "a", "include_content": "yes"}, "include_content", "true or false"),
    ({"query": "a", "graph_expand": 0}, "graph_expand", "true or false"),
    ({"query": "a", "graph_hops": 0}, "graph_hops", "greater than or equal to 1"),
    ({"query": "a", "graph_hops": 3}, "graph_hops", "less than or equal to 2"),
    ({"query": "a", "graph_hops": "1"}, "graph_hops", "whole number"),
    ({"query": "a", "page": "x"}, "page", "scans only"),
    ({"page": ""}, "page", "blank"),
    ({"page": 7}, "page", "Must be a string"),
    ({"page": "x" * 2001}, "page", "2000"),
]
MIDNIGHT = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(("data", "field", "text"), ERRORS)
def test_a_wrong_parameter_is_named(data: dict[str, Any], field: str, text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        to_request(data)
    messages = messages_by_field(caught.value)
    assert list(messages) == [field]
    assert text in messages[field][0]
    # What the client sent must never make the answer impossible to encode.
    assert str(messages).encode("utf-8")


def test_all_mistakes_come_at_once() -> None:
    with pytest.raises(ValidationError) as caught:
        to_request({"top_k": 0, "type": "x", "nonsense": 1})
    assert set(messages_by_field(caught.value)) == {"top_k", "type", "nonsense"}


@pytest.mark.parametrize("until", ["2026-01-31T00:00:00Z", "2026-01-31T08:59:00+09:00"])
def test_since_is_earlier_than_until(until: str) -> None:
    with pytest.raises(ValidationError) as caught:
        to_request({"query": "a", "since": "2026-01-31T00:00:00Z", "until": until})
    assert messages_by_field(caught.value) == {"since": ["Must be earlier than until."]}


def test_defaults() -> None:
    request = to_request({"query": "  a  "})
    assert request == SearchRequest(query="a")
    assert request.rerank
    assert not (request.include_content or request.graph_expand or request.is_scan)


@pytest.mark.parametrize("data", [{}, {"query": ""}, {"query": " \t\n\u3000"}])
def test_a_request_without_a_query_is_a_scan(data: dict[str, Any]) -> None:
    request = to_request({**data, "page": "token"})
    assert request == SearchRequest(query="", page="token")
    assert request.is_scan


def test_all_is_the_same_as_left_out_for_type_and_state_alone() -> None:
    data = {
        "query": "q",
        **dict.fromkeys(("type", "state", "repo", "milestone", "assignee"), "all"),
    }
    filters = Filters(repo="all", milestone="all", assignee="all")
    assert to_request(data) == SearchRequest("q", filters)
    assert to_request({"query": "q", "labels": ["all"]}).filters.labels == ("all",)


def test_every_parameter_arrives() -> None:
    request = to_request(
        {
            "query": "q",
            "repo": "app",
            "type": "diff",
            "state": "open",
            "labels": ["b", "a", "b"],
            "milestone": "m",
            "assignee": "who",
            "since": "2026-01-30T00:00:00Z",
            "until": "2026-01-31T09:00:00+09:00",
            "top_k": 50,
            "fusion": "dense_only",
            "rerank": False,
            "sort": "created_desc",
            "include_content": True,
            "graph_expand": True,
            "graph_hops": 2,
        }
    )
    filters = Filters(
        repo="app",
        type="diff",
        state="open",
        labels=("b", "a"),
        milestone="m",
        assignee="who",
        since=MIDNIGHT.replace(day=30),
        until=MIDNIGHT,
    )
    assert request == SearchRequest(
        "q",
        filters,
        top_k=50,
        fusion="dense_only",
        sort="created_desc",
        rerank=False,
        include_content=True,
        graph_expand=True,
        graph_hops=2,
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [("type", ROW_TYPES), ("state", STATES), ("fusion", FUSIONS), ("sort", SORTS)],
)
def test_every_word_is_accepted(name: str, words: tuple[str, ...]) -> None:
    for word in words:
        request = to_request({"query": "q", name: word})
        assert word in (getattr(request, name, None), getattr(request.filters, name, None))


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T00:00:00Z",
        "2026-01-31t00:00:00z",
        "2026-01-31T00:00Z",
        "2026-01-31 00:00:00+00:00",
        "2026-01-31T00:00:00.000000000Z",
        "2026-01-31T09:00:00+09:00",
        "2026-01-30T19:00:00-0500",
    ],
)
def test_times_with_a_zone_are_read(text: str) -> None:
    assert to_request({"query": "q", "since": text}).filters.since == MIDNIGHT


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("query=a+b%20c", {"query": "a b c"}),
        ("query=%E5%A7%94", {"query": "委"}),
        ("query=\u00e5\u00a7\u0094", {"query": "委"}),  # raw UTF-8, as WSGI hands it over
        ("query=a&labels=x&labels=y", {"query": "a", "labels": ["x", "y"]}),
        ("query=a&labels=x", {"query": "a", "labels": ["x"]}),
        ("query=a&top_k=07", {"query": "a", "top_k": 7}),
        ("query=a&top_k=-1", {"query": "a", "top_k": "-1"}),
        ("query=a&top_k=%D9%A7", {"query": "a", "top_k": "٧"}),
        ("graph_hops=2", {"graph_hops": 2}),
        ("rerank=false&graph_expand=true", {"rerank": False, "graph_expand": True}),
        ("rerank=maybe&include_content=1", {"rerank": "maybe", "include_content": "1"}),
        ("rerank=&query=true", {"rerank": "", "query": "true"}),
        ("query=a&top_k=" + "9" * 5000, {"query": "a", "top_k": "9" * 5000}),
        ("query=", {"query": ""}),
        ("", {}),
    ],
)
def test_a_query_string_is_read(raw: str, expected: dict[str, object]) -> None:
    assert from_query_string(raw) == expected


def test_a_scalar_given_twice_is_refused() -> None:
    with pytest.raises(ValidationError) as caught:
        from_query_string("query=a&query=b&repo=r&repo=r&labels=x&labels=x")
    assert set(messages_by_field(caught.value)) == {"query", "repo"}


@pytest.mark.parametrize("raw", ["query=%FF", "query=\u00ff", "query=%ED%A0%80", "query=\u4e00"])
def test_a_query_string_that_is_not_utf_8_is_refused(raw: str) -> None:
    with pytest.raises(ParseError, match="UTF-8"):
        from_query_string(raw)


def test_a_query_string_of_very_many_parameters_is_refused() -> None:
    with pytest.raises(ParseError, match="100"):
        from_query_string("&".join(["labels=x"] * 101))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "JSON object"),
        (b"null", "JSON object"),
        (b'"query"', "JSON object"),
        (b'{"query": "a", "query": "b"}', "more than once"),
        (b'{"labels": [{"a": 1, "a": 2}]}', "more than once"),
        (b'{"\\ud800": 1, "\\ud800": 2}', "ud800"),
        (b'{"top_k": NaN}', "NaN"),
        (b'{"top_k": -Infinity}', "Infinity"),
        (b'{"query": "\xff"}', "not UTF-8"),
        (b'{"query": "a", "top_k": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b" " * (MAX_BODY_BYTES + 1), "longer than"),
    ],
)
def test_a_body_that_is_not_a_plain_json_object_is_refused(body: bytes, text: str) -> None:
    with pytest.raises(ParseError, match=text) as caught:
        StrictJSONParser().parse(io.BytesIO(body))
    assert str(caught.value).encode("utf-8")


def test_the_longest_query_fits_a_body() -> None:
    body = b'{"query": "' + b"\\ud83d\\ude00" * 8000 + b'"}'
    assert len(to_request(StrictJSONParser().parse(io.BytesIO(body))).query) == 8000
