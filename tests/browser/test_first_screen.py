"""The first screen answers, the page stays short, and both hold for real captures as well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from oomscope.analysis import analyze
from oomscope.rendering import write_report
from tests.browser.conftest import Browser
from tests.samples import SAMPLES, sample
from tests.shared import SHARED, shared_snapshot

pytestmark = pytest.mark.browser

Page = Callable[[str], Path]
RECORDED = ("metrics_leak", "exception_holds", "nanogpt_train", "mingpt_xl", "cotenant_capped", "pending_then_free")
WIDTH, HEIGHT = 1280, 720
PHONE = 390
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
        path = folder / f"{name}.html"
        if path.exists():
            return path
        if name not in SAMPLES and not (SHARED / "recorded" / f"{name}.pickle.xz").exists():
            pytest.skip("the recorded captures are not beside this repository")
        found = sample(name) if name in SAMPLES else shared_snapshot(f"recorded/{name}")
        return write_report(analyze(found), path)

    return made


@pytest.mark.parametrize("name", [*SAMPLES, *RECORDED])
def test_the_first_screen_holds_who_why_and_what_now(browser: Browser, page: Page, name: str):
    browser.open(page(name), width=WIDTH)
    parts = [*PARTS, ".fix .what"] if name not in ("train_ok", "ddp.rank0", "ddp.rank1") else list(PARTS)
    for part in parts:
        box = browser.run(
            "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [b.left, b.top, b.right, b.bottom, b.width, b.height]",
            part,
        )
        assert box[0] >= 0, part
        assert box[1] >= 0, part
        assert box[2] <= WIDTH, part
        assert box[3] <= HEIGHT, part
        assert min(box[4:]) > 0, part


@pytest.mark.parametrize("name", [*SAMPLES, *RECORDED])
def test_the_page_is_short(browser: Browser, page: Page, name: str):
    browser.open(page(name), width=WIDTH)
    assert browser.run(_WORDS) <= MOST_WORDS
    assert browser.run("return document.documentElement.scrollHeight") <= MOST_HEIGHT


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_page_fits_a_phone(browser: Browser, page: Page, name: str):
    browser.open(page(name), width=PHONE)
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE


def test_evidence_is_one_click_away(browser: Browser, page: Page):
    browser.open(page("oom_leak_total_loss"))
    assert not browser.find("#how table").is_displayed()
    browser.find("#how summary").click()
    assert browser.find("#how table").is_displayed()


@pytest.mark.parametrize("name", [*SAMPLES, *RECORDED])
def test_sites_and_segments_fit_a_phone_and_what_does_not_says_so(browser: Browser, page: Page, name: str):
    browser.open(page(name), width=PHONE)
    wide = browser.run(
        "return [...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1)"
        ".map(one => [one.getAttribute('aria-label'), getComputedStyle(one, '::before').content])"
    )
    assert not {"Sites", "Segment map", "Holders"} & {label for label, _ in wide}
    assert all("scroll sideways" in hint for _, hint in wide)
