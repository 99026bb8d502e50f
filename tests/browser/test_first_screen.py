"""The first screen answers, the page stays short, and both hold for real captures as well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from oomscope.analysis import analyze
from oomscope.model import Snapshot
from oomscope.reading import load
from oomscope.rendering import write_report
from tests.browser.conftest import PHONE, Browser
from tests.samples import BUNDLED, SAMPLES, bundled_path, sample
from tests.shared import SHARED, shared_snapshot

pytestmark = pytest.mark.browser

Page = Callable[[str], Path]
RECORDED = ("metrics_leak", "exception_holds", "nanogpt_train", "mingpt_xl", "cotenant_capped", "pending_then_free")
NAMES = (*SAMPLES, *(f"bundled/{name}" for name in BUNDLED), *RECORDED)
CALM = ("train_ok", "ddp.rank0", "ddp.rank1", "bundled/train_ok", "bundled/ddp.rank0", "bundled/ddp.rank1")
"""Nothing failed, so there is nothing to mend."""
WIDTH, HEIGHT = 1280, 720
PHONE_HEIGHT = 844
MOST_WORDS, MOST_HEIGHT = 1300, 5500
PARTS = ("h1", ".culprit .it .at", ".held svg.bar", "#over .strip", ".sureline")
"""What the first screen of every report with a history holds."""
_WORDS = """
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let words = 0;
while (walker.nextNode()) {
  const parent = walker.currentNode.parentElement;
  if (parent.closest('script, style, title, desc') || !parent.checkVisibility({visibilityProperty: true})) continue;
  words += (walker.currentNode.textContent.match(/\\S+/g) || []).length;
}
return words;
"""


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The whole report, with replays, of a sample or of a recorded capture beside the repository."""
    folder = tmp_path_factory.mktemp("whole")

    def made(name: str) -> Path:
        path = folder / f"{name.replace('/', '_')}.html"
        if path.exists():
            return path
        if name in RECORDED and not (SHARED / "recorded" / f"{name}.pickle.xz").exists():
            pytest.skip("the recorded captures are not beside this repository")
        return write_report(analyze(_snapshot(name)), path)

    return made


def _snapshot(name: str) -> Snapshot:
    if name in SAMPLES:
        return sample(name)
    bundled = name.removeprefix("bundled/")
    return shared_snapshot(f"recorded/{name}") if bundled == name else load(bundled_path(bundled))


def _assert_inside(browser: Browser, name: str, parts: tuple[str, ...], width: int, height: int) -> None:
    shown = parts if name in CALM else (*parts, ".fix .what", ".fix .effect")
    for part in shown:
        box = browser.run(
            "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [b.left, b.top, b.right, b.bottom, b.width, b.height]",
            part,
        )
        assert box[0] >= 0, part
        assert box[1] >= 0, part
        assert box[2] <= width, part
        assert box[3] <= height, part
        assert min(box[4:]) > 0, part


@pytest.mark.parametrize("name", NAMES)
def test_the_first_screen_holds_who_why_and_what_now(browser: Browser, page: Page, name: str):
    browser.open(page(name), width=WIDTH)
    _assert_inside(browser, name, PARTS, WIDTH, HEIGHT)


@pytest.mark.parametrize("name", NAMES)
def test_so_does_that_of_a_phone(browser: Browser, page: Page, name: str):
    browser.open(page(name), width=PHONE)
    _assert_inside(browser, name, PARTS[:-1], PHONE, PHONE_HEIGHT)
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_short(browser: Browser, page: Page, name: str):
    browser.open(page(name), width=WIDTH)
    assert browser.run(_WORDS) <= MOST_WORDS
    assert browser.run("return document.documentElement.scrollHeight") <= MOST_HEIGHT


def test_evidence_is_one_click_away(browser: Browser, page: Page):
    browser.open(page("oom_leak_total_loss"))
    assert not browser.find("#how table").is_displayed()
    browser.find("#how summary").click()
    assert browser.find("#how table").is_displayed()


@pytest.mark.parametrize("name", NAMES)
def test_sites_and_segments_fit_a_phone_and_what_does_not_says_so(browser: Browser, page: Page, name: str):
    browser.open(page(name), width=PHONE)
    wide = browser.run(
        "return [...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1)"
        ".map(one => [one.getAttribute('aria-label'), getComputedStyle(one, '::before').content])"
    )
    assert not {"Sites", "Segment map", "Holders"} & {label for label, _ in wide}
    assert all("scroll sideways" in hint for _, hint in wide)
