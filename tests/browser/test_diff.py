"""The page of a comparison in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from oomscope.analysis.compare.diff import compare
from oomscope.rendering.html.diff_page import diff_to_html
from tests.browser.conftest import NARROW, WIDE, Browser
from tests.rendering.test_diff import hostile, seeded
from tests.samples import sample

pytestmark = pytest.mark.browser

MADE = {
    "real": lambda: compare(sample("train_ok"), sample("oom_fragmentation")),
    "seeded": lambda: seeded("all at once, batch doubled, rank 3"),
    "same": lambda: compare(sample("train_ok"), sample("train_ok")),
    "hostile": lambda: hostile(1, files=12),
}
Page = Callable[[str], Path]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("comparisons")

    def made(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            path.write_bytes(diff_to_html(MADE[name]()).encode("utf-8", "backslashreplace"))
        return path

    return made


@pytest.mark.parametrize("name", MADE)
def test_opens_without_a_message_or_a_request(browser: Browser, page: Page, name: str):
    browser.open(page(name))
    assert browser.run("return document.documentElement.dataset.ready") == "true"
    assert browser.messages() == []
    assert browser.requests() == []


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("name", MADE)
def test_the_page_never_scrolls_sideways(browser: Browser, page: Page, name: str, width: int):
    browser.open(page(name), width=width)
    assert browser.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("name", "scheme"), [*((name, "light") for name in MADE), ("seeded", "dark")])
def test_axe_finds_nothing(browser: Browser, page: Page, name: str, scheme: str):
    browser.open(page(name), scheme=scheme)
    assert browser.axe() == []


def test_the_first_screen_has_the_total_the_rows_and_the_figure(browser: Browser, page: Page):
    browser.open(page("seeded"))
    bottom = browser.run("return document.querySelector('#first').getBoundingClientRect().bottom")
    assert bottom <= 720
    assert "log_metrics" in browser.find("#first tbody tr").text
    assert browser.run("return document.querySelector('#fig-change').getBoundingClientRect().height") > 150
