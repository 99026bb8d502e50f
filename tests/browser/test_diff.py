"""The page of a comparison in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import Browser

pytestmark = pytest.mark.browser

Page = Callable[[str], Path]


def test_the_first_screen_has_the_total_the_rows_and_the_figure(browser: Browser, page: Page):
    browser.open(page("diff.seeded"))
    bottom = browser.run("return document.querySelector('#first').getBoundingClientRect().bottom")
    assert bottom <= 720
    assert "log_metrics" in browser.find("#first tbody tr").text
    assert browser.run("return document.querySelector('#fig-change').getBoundingClientRect().height") > 150
