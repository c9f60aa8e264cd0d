"""The embedder behind HTTP, against a server that speaks OpenAI's API and one that misbehaves."""

import math
import socket
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pytest_django import Settings

from search.embedding_http import OpenAIEmbedder, parse
from search.errors import EmbeddingError
from tests.fakes import models_server as fake
from tests.fakes.models_server import ModelsServer

DIMENSIONS: Final = 4
AMPLE_MS: Final = 15_000  # where nothing is slow but perhaps the machine
TOTAL_MS: Final = 1_000
LOOSE: Final = 20
KEY: Final = "sk-very-secret"


@pytest.fixture
def server() -> Iterator[ModelsServer]:
    with ModelsServer() as running:
        running.answer = fake.embed(DIMENSIONS)
        yield running


@pytest.fixture(autouse=True)
def use_server(server: ModelsServer, settings: Settings) -> None:
    settings.SEARCH_EMBED_URL = server.url("/v1/")
    settings.SEARCH_EMBED_API_KEY = KEY
    settings.SEARCH_EMBED_MODEL = "m"
    settings.SEARCH_EMBED_DIMENSIONS = DIMENSIONS
    settings.SEARCH_EMBED_TIMEOUT_MS = AMPLE_MS
    settings.SEARCH_EMBED_BATCH_TIMEOUT_MS = AMPLE_MS


def vector(text: str) -> tuple[float, ...]:
    return tuple(fake.axis(len(text), DIMENSIONS))


def failure() -> str:
    with pytest.raises(EmbeddingError) as caught:
        OpenAIEmbedder().embed_query("abc")
    assert KEY not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_query_is_asked_for_as_openai_documents(server: ModelsServer) -> None:
    assert OpenAIEmbedder().embed_query("abc") == vector("abc")
    (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.body == {"model": "m", "input": ["abc"], "encoding_format": "float"}
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_it_names_its_model_and_dimensions() -> None:
    embedder = OpenAIEmbedder()
    assert (embedder.model, embedder.dimensions) == ("m", DIMENSIONS)


def test_passages_go_in_batches_and_keep_their_order(
    server: ModelsServer, settings: Settings
) -> None:
    settings.SEARCH_EMBED_BATCH = 3
    texts = ["x" * n for n in (5, 1, 3, 2, 8, 0, 6)]
    sent = ["x" * n for n in (5, 1, 3, 2, 8)] + [" ", "x" * 6]  # an empty text is refused by some
    assert OpenAIEmbedder().embed_passages(texts) == [vector(text) for text in sent]
    assert [request.body["input"] for request in server.requests] == [sent[:3], sent[3:6], sent[6:]]
    assert OpenAIEmbedder().embed_passages([]) == []


def test_queries_and_passages_have_their_own_prefixes(
    server: ModelsServer, settings: Settings
) -> None:
    settings.SEARCH_EMBED_QUERY_PREFIX = "query: "
    settings.SEARCH_EMBED_PASSAGE_PREFIX = "passage: "
    OpenAIEmbedder().embed_query("a")
    OpenAIEmbedder().embed_passages(["b"])
    assert [request.body["input"] for request in server.requests] == [["query: a"], ["passage: b"]]


def test_text_that_utf8_cannot_hold_is_mended(server: ModelsServer) -> None:
    OpenAIEmbedder().embed_query("a\ud800\0語")
    assert server.requests[0].body["input"] == ["a? 語"]


def test_vectors_are_scaled_to_length_one(server: ModelsServer) -> None:
    server.answer = fake.as_json({"data": [{"index": 0, "embedding": [3, 0, 0, -4.0]}]})
    assert OpenAIEmbedder().embed_query("a") == (0.6, 0.0, 0.0, -0.8)


# --- Retries -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "passing",
    [
        fake.status(500),
        fake.status(503),
        fake.status(429),
        fake.status(429, ("Retry-After", "0")),
        fake.hang_up(),
    ],
    ids=["500", "503", "429", "429 with Retry-After", "hang up"],
)
def test_what_may_pass_is_tried_again(passing: fake.Answer, server: ModelsServer) -> None:
    server.answer = fake.each(passing, fake.embed(DIMENSIONS))
    assert OpenAIEmbedder().embed_query("abc") == vector("abc")
    assert len(server.requests) == 2


def test_a_try_that_hangs_leaves_time_for_another(server: ModelsServer, settings: Settings) -> None:
    settings.SEARCH_EMBED_TIMEOUT_MS = 3_000
    server.answer = fake.each(fake.hang(), fake.embed(DIMENSIONS))
    assert OpenAIEmbedder().embed_query("abc") == vector("abc")


def test_retry_after_is_waited_for(server: ModelsServer) -> None:
    server.answer = fake.each(fake.status(429, ("Retry-After", "1")), fake.embed(DIMENSIONS))
    start = time.monotonic()
    OpenAIEmbedder().embed_query("abc")
    assert time.monotonic() - start >= 1


@pytest.mark.parametrize("after", ["60", "Wed, 21 Oct 2099 07:28:00 GMT"])
def test_a_retry_after_beyond_the_time_limit_is_not_waited_for(
    after: str, server: ModelsServer
) -> None:
    server.answer = fake.status(429, ("Retry-After", after))
    assert failure() == "The embedding server answered with status 429."
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [301, 307, 400, 401, 403, 404, 413, 422])
def test_what_will_not_pass_is_not_tried_again(code: int, server: ModelsServer) -> None:
    server.answer = fake.status(code, ("Location", "/elsewhere"))
    assert failure() == f"The embedding server answered with status {code}."
    assert len(server.requests) == 1


def test_tries_are_bounded(server: ModelsServer) -> None:
    server.answer = fake.status(503)
    assert failure() == "The embedding server answered with status 503."
    assert len(server.requests) == 3


# --- Answers that are wrong ----------------------------------------------------------------------


def item(index: Any, embedding: Any) -> dict[str, Any]:
    return {"index": index, "embedding": embedding}


GOOD: Final = [1.0, 0.0, 0.0, 0.0]
NO_LIST: Final = "The embedding server answered without a list of vectors."
NOT_NUMBERED: Final = "The embedding server did not number its vectors as the texts."
NOT_NUMBERS: Final = "The embedding server answered with a vector that is not all numbers."


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([], NO_LIST),
        ({"error": {"message": "secret"}}, NO_LIST),
        ({"data": {}}, NO_LIST),
        ({"data": [GOOD, GOOD]}, NO_LIST),
        ({"data": [item(0, GOOD)]}, "The embedding server answered with 1 vectors for 2 texts."),
        ({"data": [item(0, GOOD), item(0, GOOD)]}, NOT_NUMBERED),
        ({"data": [item(0, GOOD), item(2, GOOD)]}, NOT_NUMBERED),
        ({"data": [item(0, GOOD), item(True, GOOD)]}, NOT_NUMBERED),
        ({"data": [item(0, GOOD), item([], GOOD)]}, NOT_NUMBERED),
        ({"data": [item(0, GOOD), {"embedding": GOOD}]}, NOT_NUMBERED),
        (
            {"data": [item(0, GOOD), item(1, GOOD[:3])]},
            "The embedding server answered with 3 numbers; SEARCH_EMBED_DIMENSIONS is 4.",
        ),
        (
            {"data": [item(0, GOOD), item(1, None)]},
            "The embedding server answered with no vector; SEARCH_EMBED_DIMENSIONS is 4.",
        ),
        (
            {"data": [item(0, GOOD), item(1, "AACAPwAAAAA=")]},
            "The embedding server answered in base64; it was asked for numbers.",
        ),
        ({"data": [item(0, GOOD), item(1, [0.1, None, 0, 0])]}, NOT_NUMBERS),
        ({"data": [item(0, GOOD), item(1, [0.1, "1", 0, 0])]}, NOT_NUMBERS),
        ({"data": [item(0, GOOD), item(1, [0.1, True, 0, 0])]}, NOT_NUMBERS),
        ({"data": [item(0, GOOD), item(1, [0.1, math.nan, 0, 0])]}, NOT_NUMBERS),
        ({"data": [item(0, GOOD), item(1, [0.1, -math.inf, 0, 0])]}, NOT_NUMBERS),
        ({"data": [item(0, GOOD), item(1, [0.1, 10**400, 0, 0])]}, NOT_NUMBERS),
        (
            {"data": [item(0, GOOD), item(1, [0, 0, 0, 0])]},
            "The embedding backend returned a vector that is zero or not finite.",
        ),
    ],
)
def test_an_answer_that_is_not_one_vector_a_text_is_refused(answer: object, reason: str) -> None:
    with pytest.raises(EmbeddingError) as caught:
        parse(answer, count=2, dimensions=DIMENSIONS)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (fake.text(b"<html>ok</html>"), "answered with something that is not JSON."),
        (fake.text(b'{"data": ['), "answered with something that is not JSON."),
        (fake.text(b" " * 200_000), "answered with more than 100,128 bytes."),
    ],
    ids=["html", "cut json", "huge"],
)
def test_a_broken_answer_is_one_line(
    answer: fake.Answer, reason: str, server: ModelsServer
) -> None:
    server.answer = answer
    assert failure() == f"The embedding server {reason}"


@pytest.mark.parametrize("answer", [fake.hang(), fake.drip_body(), fake.drip_head()])
def test_an_answer_that_never_ends_is_one_line_in_time(
    answer: fake.Answer, server: ModelsServer, settings: Settings
) -> None:
    settings.SEARCH_EMBED_TIMEOUT_MS = TOTAL_MS
    server.answer = answer
    start = time.monotonic()
    assert failure() == f"The embedding server did not answer within {TOTAL_MS} ms."
    assert time.monotonic() - start < LOOSE * TOTAL_MS / 1000


def test_nobody_listening_is_one_line(settings: Settings) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        settings.SEARCH_EMBED_URL = f"http://127.0.0.1:{closed.getsockname()[1]}"
        assert failure() == "The embedding server could not be reached (ConnectError)."


@pytest.mark.parametrize(
    "name", ["SEARCH_EMBED_URL", "SEARCH_EMBED_MODEL", "SEARCH_EMBED_DIMENSIONS"]
)
def test_a_setting_that_is_missing_is_named(name: str, settings: Settings) -> None:
    setattr(settings, name, type(getattr(settings, name))())
    with pytest.raises(EmbeddingError, match=f"{name} is not set"):
        OpenAIEmbedder()


@pytest.mark.parametrize(
    ("name", "value"),
    [("SEARCH_EMBED_URL", "nonsense"), ("SEARCH_EMBED_API_KEY", f"{KEY}\r\nX-Evil: 1")],
)
def test_a_setting_that_cannot_work_is_told_without_the_key(
    name: str, value: str, settings: Settings
) -> None:
    setattr(settings, name, value)
    assert failure() == "The embedding server cannot be called: its URL or key is not valid."
