"""The docs cannot rot: settings, commands and links in them are those of the code."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from search.conf import SETTINGS
from tests.postgres import BASE_DIR

DOCS = BASE_DIR / "docs"
OURS = {"ragsite", "search", "indexer", "ingest_readonly"}
PAGES = [BASE_DIR / "README.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_each_setting_is_documented_with_its_default(setting: object) -> None:
    name, default, help_ = setting.name, setting.default, setting.help  # type: ignore[attr-defined]
    assert f"| `{name}` | `{default!r}` | {help_} |" in (DOCS / "settings.md").read_text()


def test_each_variable_of_the_template_is_documented() -> None:
    names = re.findall(r"^#?([A-Z_]+)=", (BASE_DIR / ".env.example").read_text(), re.MULTILINE)
    text = (DOCS / "settings.md").read_text()
    assert [name for name in names if f"`{name}`" not in text] == []


def test_each_command_is_documented() -> None:
    text = "".join(page.read_text() for page in PAGES)
    commands = sorted(name for name, app in get_commands().items() if app in OURS)
    assert [name for name in commands if f"manage.py {name}" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(BASE_DIR)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_files_named_in_the_index_exist() -> None:
    named = re.findall(
        r"`((?:search|indexer|ragsite|tests|ingest_readonly)/[\w./]+)`",
        (DOCS / "index.md").read_text(),
    )
    assert named
    assert [name for name in named if not (BASE_DIR / name).exists()] == []
