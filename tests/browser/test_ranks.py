"""The page of a job's ranks in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from oomscope.analysis.compare.ranks import compare_ranks
from oomscope.rendering.html.ranks_page import ranks_to_html
from tests.browser.conftest import NARROW, WIDE, Browser
from tests.rendering.ranks import BAD, hostile, job, made

pytestmark = pytest.mark.browser

MADE = {
    "eight": lambda: job(8),
    "thousands": lambda: job(5000),
    "hostile": lambda: hostile(1),
    "one": lambda: compare_ranks([made(0, None)]),
}
PHONE = 390
Page = Callable[[str], Path]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("ranks")

    def written(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            text = ranks_to_html(MADE[name](), BAD if name == "hostile" else ())
            path.write_bytes(text.encode("utf-8", "backslashreplace"))
        return path

    return written


@pytest.mark.parametrize("name", MADE)
def test_opens_without_a_message_or_a_request(browser: Browser, page: Page, name: str):
    browser.open(page(name))
    assert browser.run("return document.documentElement.dataset.ready") == "true"
    assert browser.messages() == []
    assert browser.requests() == []


@pytest.mark.parametrize("width", [NARROW, PHONE, WIDE])
@pytest.mark.parametrize("name", MADE)
def test_the_page_never_scrolls_sideways(browser: Browser, page: Page, name: str, width: int):
    browser.open(page(name), width=width)
    assert browser.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("name", "scheme"), [*((name, "light") for name in MADE), ("eight", "dark")])
def test_axe_finds_nothing(browser: Browser, page: Page, name: str, scheme: str):
    browser.open(page(name), scheme=scheme)
    assert browser.axe() == []


@pytest.mark.parametrize("name", ["eight", "thousands"])
def test_the_first_screen_has_the_facts_and_the_figure(browser: Browser, page: Page, name: str):
    browser.open(page(name))
    assert browser.run("return document.querySelector('#first').getBoundingClientRect().bottom") <= 720
    assert browser.run("return document.querySelector('#fig-ranks').getBoundingClientRect().height") > 150
    assert "Out of memory first" in browser.find("#first tbody tr").text


def test_numbers_are_sorted_by_their_bytes(browser: Browser, page: Page):
    browser.open(page("thousands"))
    table = "document.querySelector('#ranks table')"
    browser.run(f"{table}.tHead.querySelectorAll('button')[1].click()")
    assert browser.run(f"return {table}.tBodies[0].rows[0].cells[0].textContent") == "2500"
    browser.run(f"{table}.tHead.querySelectorAll('button')[1].click()")
    values = browser.run(f"return [...{table}.tBodies[0].rows].map((row) => Number(row.cells[1].dataset.v))")
    assert values == sorted(values)
    assert len(set(values)) > 10
