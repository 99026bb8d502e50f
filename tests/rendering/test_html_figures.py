"""Memory under other settings as bars: the limit and the least memory are marked and named."""

from __future__ import annotations

import re

from oomscope.analysis.whatif.records import SelfCheck, WhatIf, WhatIfRow
from oomscope.rendering.html import palette
from oomscope.rendering.html.figures import whatif_figure
from oomscope.rendering.html.svg import StyleSheet
from oomscope.units import GIB


def drawn(*rows: WhatIfRow) -> str:
    sheet = StyleSheet()
    figure = whatif_figure(WhatIf(device=0, self_check=SelfCheck(1, 1, 0, None), rows=rows), sheet)
    assert figure is not None
    text = str(figure)
    return re.sub(r'class="(m\d+)"', lambda match: f'style="{_rule(sheet, match[1])}"', text)


def _rule(sheet: StyleSheet, name: str) -> str:
    found = re.search(rf"\.{name}{{([^}}]*)}}", sheet.css())
    assert found is not None
    return found[1]


FAILED = WhatIfRow("recorded", limit=8 * GIB, peak_reserved=7 * GIB, oom=True, least_memory=9 * GIB)
SERVED = WhatIfRow("expandable_segments:True", limit=8 * GIB, peak_reserved=6 * GIB, oom=False)


def test_the_limit_and_the_least_memory_are_marked_and_named():
    text = drawn(FAILED, SERVED)
    assert "limit 8.00 GiB" in text
    assert "7.00 GiB, fails; needs 9.00 GiB" in text
    assert "expandable_segments:True" in text
    for colour in (palette.LIMIT, palette.ALARM, palette.BAR, palette.SOFT_BAR):
        assert f"var(--{colour.variable})" in text


def test_nothing_is_marked_where_nothing_is_known():
    text = drawn(WhatIfRow("recorded", peak_reserved=GIB, oom=False), WhatIfRow("x", peak_reserved=GIB, oom=False))
    assert "limit" not in text
    assert f"var(--{palette.ALARM.variable})" not in text


def test_settings_with_names_of_strangers_are_left_to_the_table():
    text = drawn(FAILED, WhatIfRow("without \u202e<script>alert(1)</script>", peak_reserved=GIB, oom=False))
    drawing = text.split("</desc>")[1]
    assert "script" not in drawing
    assert "row 2" in drawing
