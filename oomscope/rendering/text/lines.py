"""Lines of a terminal that both views of it share."""

from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from oomscope.analysis.findings import DeviceFindings
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.html.culprit import culprit
from oomscope.wording.clean import clean
from oomscope.wording.paths import Shorten

_LONGEST_LINE = 160


def wrapped(text: Text, width: int, most: int) -> list[Text]:
    """`text` in at most `most` lines, the last one cut where there is more."""
    console = Console(file=io.StringIO(), width=width, legacy_windows=False)
    lines = list(text.wrap(console, width, overflow="fold"))
    for line in lines:
        line.rstrip()
    if len(lines) > most:
        lines = lines[:most]
        lines[-1].truncate(width - 1)
        lines[-1].append("…")
    return lines


def source_line(device: DeviceFindings, sources: Sources, shorten: Shorten, width: int) -> list[Text]:
    """The line to look at, where its text is known; the verdict names it anyway."""
    line = culprit(device, shorten, sources)
    if line is None or line.excerpt is None:
        return []
    text = clean(line.excerpt.text, _LONGEST_LINE)
    return wrapped(Text.assemble((f"  {line.file}:{line.line}  ", "dim"), text), width, 1)
