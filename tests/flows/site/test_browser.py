"""In a real browser, from files: no network is asked, a phone or a keyboard does, all can be read."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from store import Snapshot, Store
from tests.flows.site.conftest import HOSTILE, TEXTS

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1200, "height": 800}
LAMBDA = "memory/python.lambda"

FAINT = """() => {
  const channel = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = parse(getComputedStyle(node).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  let looked = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !node.checkVisibility()) continue;
    const style = getComputedStyle(node);
    const front = parse(node instanceof SVGElement ? style.fill : style.color);
    const pair = [light(front), light(behind(node))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    looked += 1;
    if (ratio < 4.5) found.push(`${walk.currentNode.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  for (const node of document.querySelectorAll(".chart .line, .chart .dot")) {
    const style = getComputedStyle(node);
    const drawn = parse(node.matches(".dot") ? style.fill : style.stroke);
    const pair = [light(drawn), light(behind(node.closest("figure")))].sort((a, b) => b - a);
    looked += 1;
    if ((pair[0] + 0.05) / (pair[1] + 0.05) < 3) found.push(`${node.className.baseVal} of a chart`);
  }
  return [looked, found];
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport=DESK)
    context.set_default_timeout(10_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


def addresses(site: Path) -> list[str]:
    """Every page, and one element alone."""
    return [*(path.as_uri() for path in sorted(site.rglob("*.html"))), address_of(site, LAMBDA)]


def address_of(site: Path, name: str) -> str:
    (path,) = [path for path in (site / "elements").glob("*.html") if f'id="{name}"' in path.read_text()]
    return f"{path.as_uri()}#{name}"


def test_no_page_asks_for_anything_outside_or_complains(site: Path, page: Page) -> None:
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
    for address in addresses(site):
        page.goto(address)
        page.keyboard.press("/")
        page.keyboard.type("python")
        page.locator("#found-list a").first.wait_for()
    assert complaints == []
    assert len(requests) > 3 * len(addresses(site))
    assert {request for request in requests if not request.startswith(site.as_uri())} == set()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_every_page_without_scrolling_sideways_and_nothing_is_faint(
    site: Path, browser: Browser, scheme: str
) -> None:
    context = browser.new_context(viewport=PHONE, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    for address in addresses(site):
        page.goto(address)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"], address
        looked, faint = page.evaluate(FAINT)
        assert looked > 10, address
        assert faint == [], address
        page.keyboard.press("/")
        page.keyboard.type("python")
        page.locator("#found-list a").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address
    context.close()


def test_the_dark_has_other_colours(site: Path, browser: Browser) -> None:
    colours = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto((site / "index.html").as_uri())
        style = "(({color, backgroundColor}) => color + backgroundColor)(getComputedStyle(document.body))"
        colours.append(page.evaluate(style))
        context.close()
    assert colours[0] != colours[1]


def test_an_element_is_found_and_opened_with_the_keyboard_alone(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("python. lam")
    page.locator("#found-list a").first.wait_for()
    page.keyboard.press("ArrowDown")
    active = page.locator("#search").get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").text_content() == LAMBDA
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    page.wait_for_url(address_of(site, LAMBDA))
    assert page.locator("article:visible h2").all_text_contents() == [LAMBDA]
    assert page.title() == f"{LAMBDA} · cellar"
    word = TEXTS[LAMBDA].split()[0]
    assert word in (page.locator("article:visible .decoded").text_content() or "")
    page.get_by_role("link", name="Its neighbours by name").press("Enter")
    assert page.locator("article:visible").count() > 1


def test_arrows_go_around_and_escape_leaves(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("python")
    page.locator("#found-list a").first.wait_for()
    status = page.locator("#found-status")
    status.filter(has_text="7 elements").wait_for()
    assert status.get_attribute("aria-live") == "polite"
    page.keyboard.press("ArrowUp")
    chosen = page.locator("#found-list [aria-selected=true]")
    assert chosen.text_content() == page.locator("#found-list a").last.text_content()
    page.keyboard.press("ArrowDown")
    assert chosen.text_content() == page.locator("#found-list a").first.text_content()
    page.keyboard.press("Escape")
    assert page.locator("#found").is_hidden()
    assert page.locator("#search").get_attribute("aria-expanded") == "false"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    page.keyboard.press("/")
    page.keyboard.type("no such name")
    status.filter(has_text="No name holds this.").wait_for()


def test_a_name_by_an_enemy_is_found_opened_and_only_text(site: Path, page: Page) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.goto((site / "snapshots.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("onerror=alert")
    page.locator("#found-list a").first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/elements/**")
    assert page.locator("article:visible h2").all_text_contents() == [HOSTILE]
    assert "marzipan" in (page.locator("article:visible .decoded").text_content() or "")
    assert page.locator("article img").count() == 0
    assert dialogs == []


def test_a_script_that_got_into_a_page_would_not_run(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    ran = page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          document.head.append(script);
          return window.ran === true;
        }"""
    )
    assert not ran


def test_whoever_tabs_sees_where_he_is(site: Path, page: Page) -> None:
    page.goto((site / "snapshots.html").as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    seen = set()
    for _ in range(12):
        outline, what = page.evaluate(
            "(({outlineStyle}) => [outlineStyle, document.activeElement.outerHTML])"
            "(getComputedStyle(document.activeElement))"
        )
        assert outline == "solid", what
        seen.add(what)
        page.keyboard.press("Tab")
    assert len(seen) == 12


def test_without_scripts_every_page_is_there(
    site: Path, browser: Browser, cellar_store: tuple[Store, Snapshot, Snapshot]
) -> None:
    context = browser.new_context(java_script_enabled=False, viewport=DESK)
    page = context.new_page()
    page.goto((site / "index.html").as_uri())
    assert page.locator("#search").is_hidden()
    page.get_by_role("link", name="Elements").click()
    assert page.locator("noscript").count() == 1
    page.goto(address_of(site, LAMBDA))
    assert page.locator("article:visible h2").all_text_contents() == [LAMBDA]
    page.goto((site / f"snapshots/{cellar_store[2].id}.html").as_uri())
    assert page.locator("h1").is_visible()
    context.close()


def test_nothing_moves_for_who_wants_less_motion(site: Path, browser: Browser) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto((site / "index.html").as_uri())
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    context.close()
