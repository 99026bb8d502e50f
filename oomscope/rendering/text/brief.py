"""The findings in one screen of a terminal: why, what to do, who holds the memory, and when."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.rendering.common import said_tables
from oomscope.rendering.common.shares import shares
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.common.tables import percent_text
from oomscope.rendering.common.whatif_table import left_every_pass
from oomscope.rendering.text.lines import source_line, wrapped
from oomscope.rendering.text.sparkline import marks, sparkline
from oomscope.rendering.text.terminal import changed_by_settings, section
from oomscope.units import format_bytes
from oomscope.wording.clean import clean
from oomscope.wording.instants import instant_of
from oomscope.wording.opening import changing_replays, occasion, verdict_text
from oomscope.wording.page import effect_text, else_text
from oomscope.wording.paths import Shorten, shortener
from oomscope.wording.verdict_text import advice_text, said_confidence
from oomscope.wording.window import shown_part

LINES = 20
"""A screen of 24 lines still shows the command above and the prompt below."""
MOST_ROWS = 5
"""Rows of memory where there is room; at least three fit always."""
LEAST_ROWS = 3
WORTH_TELLING = 0.1
"""Of the reserved bytes, when not in use: whoever compares what is in use with the limit asks where the rest is."""
_MARGIN = 28
"""Columns beside the curve: its name in front, its size behind."""
_WIDE_MARGIN = 37
"""The same, where the limit stands behind its size."""
_NAMES = 6
_RAGGED = 20
"""Columns that wrapping may leave empty at the ends of two lines."""
_EXAMPLES = re.compile(r" \([^()]*\)(?=\.\Z)")
"""Examples in brackets at the end of an action, which can go where room is short."""
_SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z0-9`])")


def brief(findings: Findings, *, width: int, replayed: bool = True, sources: Sources | None = None) -> RenderableType:
    """The findings in at most `LINES` lines for a console of `width` columns.

    Args:
        findings: what to show.
        width: columns.
        replayed: whether other settings were replayed; if not, the last line says how to.
        sources: where lines of source are looked up; None: in the dump alone.
    """
    shorten, device = shortener(findings.snapshot.stacks), findings.main
    head = wrapped(Text(occasion(findings, shorten), style="bold"), width, 2)
    if part := shown_part(findings):
        head += wrapped(Text(part), width, 2)
    above = [*head, Text(), *_verdict(verdict_text(findings), width, 4)]
    if device is None:
        return Group(*above, Text(), *section(said_tables.counted_holders(findings, MOST_ROWS)))
    above += source_line(device, sources or Sources(findings.snapshot), shorten, width)
    below = [*_timeline(device, width), *_foot(device, width, replayed)]
    room = LINES - len(above) - len(below) - 2  # a blank line and the title of the rows
    advice = next(
        (lines for lines in _ways_to_say(device, width) if room - len(lines) >= LEAST_ROWS), _said(device, width, 2)
    )
    above, room = [*above, *advice], room - len(advice)
    replay = _replays(findings, width)
    if room - len(replay) >= LEAST_ROWS:
        below, room = [*replay, *below], room - len(replay)
    return Group(*above, *_memory(findings, device, shorten, width, min(room, MOST_ROWS)), *below)


def answered(findings: Findings, *, width: int, sources: Sources | None = None) -> RenderableType:
    """The screen, and below it what other settings would have changed."""
    answers = [answer for answer in findings.whatif if answer.rows]
    per_pass = left_every_pass(findings.main)
    below = [part for answer in answers for part in changed_by_settings(answer, per_pass)]
    return Group(brief(findings, width=width, sources=sources), Text(), *below)


def _verdict(text: str, width: int, most: int) -> list[Text]:
    """As many sentences of the verdict as fit; at least the first."""
    sentences = _SENTENCE_END.split(text)
    for count in range(len(sentences), 1, -1):
        lines = wrapped(Text(" ".join(sentences[:count])), width, most + 1)
        if len(lines) <= most:
            return lines
    return wrapped(Text(sentences[0]), width, most)


def _ways_to_say(device: DeviceFindings, width: int) -> Iterator[list[Text]]:
    """What to do, from the fullest to the shortest: the fix in three lines and another one, or the fix alone."""
    fix = _said(device, width, 3)
    for other in _ways_to_say_another(device, width):
        yield [*fix, *other]
    yield fix


def _said(device: DeviceFindings, width: int, most: int) -> list[Text]:
    """The best advice in at most `most` lines, and what it gives."""
    advice = device.oom.verdict.advice if device.oom else ()
    if device.oom is None or not advice:
        return []
    if advice[0].refuted:
        return [Text(), *_hanging("Fix", Text(f"none known; {else_text(advice)}: --full"), width, 1)]
    action = _shortened(clean(advice_text(advice[0]).action, 400), most * (width - _NAMES) - _RAGGED)
    effect = Text(effect_text(advice[0], device.oom))
    return [Text(), *_hanging("Fix", Text(action, style="bold"), width, most), *_hanging("", effect, width, 1)]


def _ways_to_say_another(device: DeviceFindings, width: int) -> Iterator[list[Text]]:
    """The next best advice, none of it cut, from the fullest to the shortest.

    A higher cap is another way only where nothing is to be let go of, and then it comes first.
    """
    oom = device.oom
    helping = [one for one in oom.verdict.advice if not one.refuted] if oom is not None else []
    other = next((one for one in helping[1:] if one.slug != "raise_cap"), None)
    if oom is None or other is None:
        return
    action, effect = clean(advice_text(other).action, 400), effect_text(other, oom)
    in_brackets = f" ({effect.replace(' · ', ', ')})." if effect else "."
    for text in (action.removesuffix(".") + in_brackets, action, _EXAMPLES.sub("", action)):
        lines = _hanging("Or", Text(text), width, 3)
        if len(lines) <= 2:
            yield lines


def _shortened(action: str, most: int) -> str:
    """An action without its examples, or only its first sentence, where it is longer than `most` letters."""
    if len(action) > most:
        action = _EXAMPLES.sub("", action)
    return action if len(action) <= most else _SENTENCE_END.split(action)[0]


def _hanging(name: str, text: Text, width: int, most: int) -> list[Text]:
    """`text` behind a name, its further lines below its beginning."""
    lines = wrapped(text, width - _NAMES, most)
    return [
        Text.assemble((f"{name if not number else '':<{_NAMES}}", "dim"), line) for number, line in enumerate(lines)
    ]


def _memory(findings: Findings, device: DeviceFindings, shorten: Shorten, width: int, most: int) -> list[Text]:
    allocated = device.at.allocated
    when = instant_of(findings.at, device)
    unused = device.at.reserved - allocated
    of = f" of {format_bytes(device.at.reserved)} reserved" if unused > WORTH_TELLING * device.at.reserved else ""
    lines = [Text(), *wrapped(Text(f"{format_bytes(allocated)} in use{of} {when}", style="bold"), width, 1)]
    for row in shares(device, shorten, most):
        share = percent_text(row.bytes, allocated)
        lines += wrapped(Text.assemble(f"{format_bytes(row.bytes):>10}  {share:>4}  ", row.text), width, 1)
    return lines


def _timeline(device: DeviceFindings, width: int) -> list[Text]:
    """Allocated bytes over the entries of the trace, to the scale of the limit; below it the requests that failed."""
    curves, entries, oom = device.history.curves, device.history.entries, device.oom
    if entries < 2:
        return []
    across, highest = width - _MARGIN, format_bytes(int(curves.allocated.max()))
    if oom is None:
        top = int(curves.reserved.max())
        line = sparkline(curves.reserved, top, across)
        return [
            _curve("allocated", sparkline(curves.allocated, top, across), highest),
            _curve("reserved", line, format_bytes(top)),
        ]
    limit, top = oom.limit.low, int(curves.reserved.max())
    if oom.limit.source != "device":
        top = max(top, limit)
    failed = np.asarray([one.entry + 1 for one in device.ooms], dtype=np.int64)
    beside = min(width - _WIDE_MARGIN, entries + 1)
    if marks(failed, entries + 1, beside, "^") == "^".rjust(beside):
        # It failed at the end of the curve, which needs no line of its own to say so.
        line = sparkline(curves.allocated, top, beside)
        return [_curve("allocated", line, f"{highest}, limit {format_bytes(limit)}")]
    line = marks(failed, entries + 1, across, "^").ljust(min(across, entries + 1))
    return [
        _curve("allocated", sparkline(curves.allocated, top, across), highest),
        Text.assemble(f"{'OOM':<11}", line, f"  limit {format_bytes(limit)}"),
    ]


def _curve(name: str, line: str, behind: str) -> Text:
    return Text.assemble(f"{name:<11}", (line, "cyan"), f"  {behind}")


def _replays(findings: Findings, width: int) -> list[Text]:
    text = changing_replays(findings)
    return [Text(), *wrapped(Text(text), width, 2)] if text else []


def _foot(device: DeviceFindings, width: int, replayed: bool) -> list[Text]:
    """How sure it is, and where there is more."""
    parts = []
    if device.oom is not None:
        parts.append(f"cause known with {said_confidence(device.oom.verdict)}")
    if not replayed:
        parts.append("replay other settings: --whatif")
    parts.append("more: --full")
    return wrapped(Text(" · ".join(parts), style="dim"), width, 2)
