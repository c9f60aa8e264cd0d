"""The inspection page as a person uses it: mouse, keyboard, narrow window, assistive technology."""

from typing import Any, Literal
from urllib.parse import quote, urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import HOSTILE_PATH, HOSTILE_TITLE

pytestmark = pytest.mark.browser

PAGE = "/admin/search/inspect/"
KEY = "file:acme/app:rules/limit.md"
PAGES = {
    "index": "/admin/",
    "blank": PAGE,
    "answer": f"{PAGE}?query=limit+rounds&top_k=12",
    "errors": f"{PAGE}?query=&top_k=99&since=yesterday&type=nothing&lables=x",
    "why": f"{PAGE}?query=limit&top_k=3&why={quote(KEY)}",
    "compare": f"{PAGE}compare/?query=limit&against_fusion=dense_only",
    "rows": f"{PAGE}rows/?query=limit&key={quote(KEY)}",
    "no such entity": f"{PAGE}rows/?key=nothing",
    "list": "/admin/ingest_readonly/searchdoc/",
    "searched list": "/admin/ingest_readonly/searchdoc/?q=%23101&type=issue",
    "row": "/admin/ingest_readonly/searchdoc/s_3A0/change/",
    "edges": "/admin/ingest_readonly/docedge/",
    "index info": "/admin/ingest_readonly/indexinfo/",
}


def search(page: Page, site: str, **parameters: object) -> None:
    page.goto(f"{site}{PAGE}?{urlencode(parameters)}")


def open_all(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")


def no_wider_than_window(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def test_from_the_index_to_an_answer(visitor: Page, site: str, messages: list[str]) -> None:
    visitor.get_by_role("link", name="Inspect a search").first.click()
    visitor.get_by_label("query").fill("limit rounds")
    visitor.get_by_label("results (top_k)").fill("5")
    visitor.get_by_label("fusion").first.select_option("dense_only")
    visitor.get_by_role("button", name="Search").click()
    expect(visitor.locator(".card")).to_have_count(5)
    assert "query=limit+rounds" in visitor.url and "top_k=5" in visitor.url
    assert "repo=" not in visitor.url
    first = visitor.locator(".card").first
    expect(first.locator("mark").first).to_have_text("limit")
    others = first.get_by_text("3 more rows of this file")
    others.click()
    expect(first.locator("details.others tbody tr")).to_have_count(3)
    expect(visitor.locator("ol.slots").first.locator("li.again")).to_have_count(3)
    assert messages == []


def test_to_all_rows_and_back(visitor: Page, site: str, messages: list[str]) -> None:
    search(visitor, site, query="limit", top_k=2, fusion="dense_only")
    visitor.get_by_role("link", name="All rows of result 1 in the index").click()
    expect(visitor.locator("tbody tr")).to_have_count(4)
    visitor.get_by_role("link", name="Back to the search").click()
    expect(visitor.get_by_label("query")).to_have_value("limit")
    expect(visitor.locator(".card")).to_have_count(2)
    assert messages == []


def test_why_it_is_not_here(visitor: Page, site: str, messages: list[str]) -> None:
    search(visitor, site, query="limit", top_k=2)
    visitor.get_by_label("GitHub address").fill("https://github.com/acme/app/issues/30")
    visitor.get_by_role("button", name="Explain").click()
    expect(visitor.locator(".account")).to_contain_text("raise top_k to see it")
    visitor.get_by_label("GitHub address").fill("acme/app#4711")
    visitor.get_by_role("button", name="Explain").click()
    expect(visitor.locator(".account")).to_contain_text("holds nothing under this name")
    visitor.get_by_role("link", name="Why result 1 is here").click()
    expect(visitor.locator(".account")).to_contain_text(
        "Here: row 1 of the pool, which represents entity 1"
    )
    assert messages == []


def test_two_settings_side_by_side(visitor: Page, site: str, messages: list[str]) -> None:
    search(visitor, site, query="limit rounds", top_k=5)
    form = visitor.locator("form.against")
    form.get_by_label("fusion").select_option("sparse_only")
    form.get_by_role("button", name="Compare").click()
    expect(visitor.locator("table.side")).to_have_count(2)
    expect(visitor.locator("table.side").nth(1).locator("caption")).to_contain_text("sparse_only")
    visitor.get_by_role("link", name="Inspect a search").click()
    expect(visitor.get_by_label("query")).to_have_value("limit rounds")
    assert messages == []


def test_an_error_is_tied_to_its_field(visitor: Page, site: str) -> None:
    search(visitor, site, query="limit", top_k=99)
    field = visitor.get_by_label("results (top_k)")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description("Ensure this value is less than or equal to 50.")


def test_the_keyboard_is_enough(visitor: Page, site: str) -> None:
    """From the address to an opened fold, a link to all rows and the box, without a mouse."""
    visitor.goto(f"{site}{PAGE}")

    def tab_to(selector: str, most: int = 60) -> None:
        for _ in range(most):
            visitor.keyboard.press("Tab")
            if visitor.evaluate("s => document.activeElement.matches(s)", selector):
                outline = visitor.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                shadow = visitor.evaluate("getComputedStyle(document.activeElement).boxShadow")
                assert outline != "none" or shadow != "none", f"{selector}: focus is not visible"
                return
        raise AssertionError(f"{selector} is not reached")

    tab_to("#id_query")
    visitor.keyboard.type("limit rounds")
    visitor.keyboard.press("Enter")
    expect(visitor.locator(".card").first).to_be_visible()
    tab_to("#id_why")
    tab_to("details.others summary")
    visitor.keyboard.press("Enter")
    expect(visitor.locator("details.others").first).to_have_attribute("open", "")
    tab_to(".card-links a")
    visitor.keyboard.press("Enter")
    visitor.wait_for_url("**/rows/**")
    expect(visitor.locator("tbody tr")).to_have_count(4)


def test_a_narrow_window_scrolls_in_one_direction(visitor: Page, site: str) -> None:
    visitor.set_viewport_size({"width": 360, "height": 740})
    for name, path in PAGES.items():
        visitor.goto(site + path)
        open_all(visitor)
        assert no_wider_than_window(visitor), name


def test_strangers_text_is_text(visitor: Page, site: str, messages: list[str]) -> None:
    search(visitor, site, query=f"limit {HOSTILE_TITLE}", top_k=50)
    cards = visitor.locator(".card")
    expect(cards.get_by_text(HOSTILE_TITLE, exact=True).first).to_be_visible()
    expect(cards.get_by_text(HOSTILE_PATH, exact=True).first).to_be_visible()
    expect(cards.get_by_text("</script>{{7*7}}", exact=True).first).to_be_visible()
    assert visitor.locator("main img, main svg[onload], main script").count() == 0
    assert no_wider_than_window(visitor)
    # The mark turns the text that follows it, within its own element and no further.
    turned = visitor.locator("#results .card", has_text="right to left").first
    assert turned.locator("bdi").first.evaluate("e => getComputedStyle(e).unicodeBidi") in {
        "isolate",
        "plaintext",
    }
    for link in visitor.locator("main a").all():
        href = link.get_attribute("href") or ""
        assert href.startswith(("https://github.com/", "/", "?", "#")), href
    assert messages == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barrier_is_found(visitor: Page, site: str, scheme: Literal["light", "dark"]) -> None:
    visitor.emulate_media(color_scheme=scheme)
    found = {}
    for name, path in PAGES.items():
        visitor.goto(site + path)
        open_all(visitor)
        violations = Axe().run(visitor).response["violations"]
        found[name] = [(v["id"], [node["target"] for node in v["nodes"]][:3]) for v in violations]
    assert found == {name: [] for name in PAGES}


def test_it_works_without_a_script(visitor: Page, site: str, messages: list[str]) -> None:
    """The policy refuses nothing, and the pages are whole where scripts are off."""
    cookies: Any = visitor.context.cookies()
    browser = visitor.context.browser
    assert browser is not None
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies([{k: c[k] for k in ("name", "value", "domain", "path")} for c in cookies])
    bare = context.new_page()
    rows = "main tr, main .form-row"
    for name in ("answer", "why", "compare", "rows", "list", "row", "edges", "index info"):
        bare.goto(site + PAGES[name])
        visitor.goto(site + PAGES[name])
        assert bare.locator(rows).count() == visitor.locator(rows).count() > 0, name
    context.close()
    assert messages == []
