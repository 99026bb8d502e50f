"""The page of a job's ranks in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import Browser

pytestmark = pytest.mark.browser

Page = Callable[[str], Path]


@pytest.mark.parametrize("name", ["ranks.eight", "ranks.thousands"])
def test_the_first_screen_has_the_facts_and_the_figure(browser: Browser, page: Page, name: str):
    browser.open(page(name))
    assert browser.run("return document.querySelector('#first').getBoundingClientRect().bottom") <= 720
    assert browser.run("return document.querySelector('#fig-ranks').getBoundingClientRect().height") > 150
    assert "Out of memory first" in browser.find("#first tbody tr").text


def test_numbers_are_sorted_by_their_bytes(browser: Browser, page: Page):
    browser.open(page("ranks.thousands"))
    table = "document.querySelector('#ranks table')"
    browser.run(f"{table}.tHead.querySelectorAll('button')[1].click()")
    assert browser.run(f"return {table}.tBodies[0].rows[0].cells[0].textContent") == "2500"
    browser.run(f"{table}.tHead.querySelectorAll('button')[1].click()")
    values = browser.run(f"return [...{table}.tBodies[0].rows].map((row) => Number(row.cells[1].dataset.v))")
    assert values == sorted(values)
    assert len(set(values)) > 10
