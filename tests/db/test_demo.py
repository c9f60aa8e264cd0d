"""The demo command touches nothing before it knows that it can serve."""

import socket
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import override_settings

from tests.postgres import TestIndex


@pytest.fixture
def demo(index: TestIndex, monkeypatch: pytest.MonkeyPatch, sample_path: Path) -> Any:
    monkeypatch.setenv("INDEX_OWNER_URL", index.owner_url)

    def run(**options: Any) -> None:
        call_command("demo", snapshot=sample_path, **options)

    return run


def test_it_is_refused_outside_debug(demo: Any) -> None:
    with override_settings(DEBUG=False), pytest.raises(CommandError, match="DEBUG only"):
        demo(no_serve=True)
    assert not get_user_model().objects.exists()


@override_settings(DEBUG=True)
def test_a_port_in_use_is_said_before_anything_is_changed(demo: Any, index: TestIndex) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as busy,
        pytest.raises(CommandError, match=r"cannot be used.*PORT=8001"),
    ):
        demo(port=busy.getsockname()[1])
    assert not get_user_model().objects.exists()
    assert index.execute("SELECT count(*) FROM search_docs") == [(0,)]


@override_settings(DEBUG=True)
def test_it_loads_the_sample_and_prints_how_to_go_on(
    demo: Any, index: TestIndex, capsys: pytest.CaptureFixture[str]
) -> None:
    demo(no_serve=True)
    said = capsys.readouterr().out
    assert "305 rows" in said
    assert "curl -s -H 'Authorization: Token " in said
    assert get_user_model().objects.get().is_superuser
    assert index.execute("SELECT count(*) FROM search_docs") == [(305,)]
