"""What holds for every page of a comparison and of ranks in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import NARROW, PHONE, WIDE, Browser
from tests.browser.pages import COMPARED

pytestmark = pytest.mark.browser

Page = Callable[[str], Path]
DARK = ("diff.seeded", "ranks.eight")


@pytest.mark.parametrize("name", COMPARED)
def test_opens_without_a_message_or_a_request(browser: Browser, page: Page, name: str):
    browser.open(page(name))
    assert browser.run("return document.documentElement.dataset.ready") == "true"
    assert browser.messages() == []
    assert browser.requests() == []


@pytest.mark.parametrize("width", [NARROW, PHONE, WIDE])
@pytest.mark.parametrize("name", COMPARED)
def test_the_page_never_scrolls_sideways(browser: Browser, page: Page, name: str, width: int):
    browser.open(page(name), width=width)
    assert browser.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    ("name", "scheme"), [*((name, "light") for name in COMPARED), *((name, "dark") for name in DARK)]
)
def test_axe_finds_nothing(browser: Browser, page: Page, name: str, scheme: str):
    browser.open(page(name), scheme=scheme)
    assert browser.axe() == []
