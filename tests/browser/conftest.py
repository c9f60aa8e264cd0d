"""A real browser against a real server: Debian's Chromium, driven by Playwright."""

import math
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test.utils import override_settings
from playwright.sync_api import Page

from tests.postgres import TestIndex, row

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PASSWORD = "correct horse battery staple"

HOSTILE_TITLE = '"><img src=x onerror=alert(1)>'
HOSTILE_PATH = "a/<svg onload=1>.md"


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    return {"executable_path": CHROMIUM, "args": FLAGS}


@pytest.fixture(scope="session", autouse=True)
def synchronous_queries() -> Iterator[None]:
    """Playwright runs an event loop in this thread, in which Django would refuse to query."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield


def at(angle: float) -> list[float]:
    return [math.cos(angle), math.sin(angle)]


def rows() -> list[dict[str, Any]]:
    """A file of four rows, a thread, issues enough to need a second page, and strangers' text."""
    path = "rules/limit.md"
    diffs = [
        row(f"c:{n}", type="diff", file_path=path, commit_sha=f"{n}a1b2c3d4", title=path,
            content=f"limit the rounds of a review {n}", embedding=at(n / 100),
            updated_at=f"2026-01-0{n + 1}T00:00:00Z")
        for n in range(3)
    ]  # fmt: skip
    texts = [
        HOSTILE_TITLE,
        "</script>{{7*7}}",
        "\u202eright to left\u2066",
        "limit " + "x" * 8_000,
    ]
    strangers = [
        row(f"s:{n}", number=100 + n, title=text, content=f"limit {text}", labels=[text[:200]],
            embedding=at(0.1 + n / 100))
        for n, text in enumerate(texts)
    ]  # fmt: skip
    issues = [
        row(f"i:{n:02}", number=n + 1, title=f"Limit {n}", content="a limit of rounds",
            embedding=at(0.3 + n / 100), updated_at="2026-02-01T00:00:00Z")
        for n in range(30)
    ]  # fmt: skip
    return [
        *diffs,
        row("d:1", type="doc", doc_path=path, content="limit of rounds", embedding=at(0.02)),
        row("d:2", type="doc", doc_path=HOSTILE_PATH, content="limit </script>", embedding=at(0.2)),
        row("d:far", type="doc", doc_path="docs/far.md", content="nothing", embedding=at(3)),
        *strangers,
        *issues,
    ]


@pytest.fixture
def site(index: TestIndex, live_server: Any) -> Iterator[str]:
    """The address of a server with a small index and two users."""
    index.load(rows(), [
        {"src_vector_id": "d:1", "dst_vector_id": "d:2", "repo": "acme/app", "src_slug": "One",
         "dst_slug": HOSTILE_TITLE, "edge_kind": "mention", "updated_at": None},
    ])  # fmt: skip
    User.objects.create_superuser("root", password=PASSWORD)
    with override_settings(SEARCH_EMBEDDER="tests.embedders.FirstAxis"):
        yield live_server.url
        for connection in connections.all(initialized_only=True):
            connection.close()


@pytest.fixture
def messages(page: Page) -> list[str]:
    """What the browser complains of: errors of scripts, of the policy, of resources."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("dialog", lambda dialog: found.append(f"dialog: {dialog.message}"))
    page.on(
        "console",
        lambda m: found.append(m.text) if m.type == "error" and "404" not in m.text else None,
    )
    return found


@pytest.fixture
def visitor(page: Page, site: str, messages: list[str]) -> Page:
    """The page of somebody who has logged in."""
    page.set_default_timeout(15_000)
    page.goto(f"{site}/admin/login/?next=/admin/")
    page.get_by_label("Username").fill("root")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{site}/admin/")
    return page
