"""The first screen: what happened, whose line, what to do, and one picture of the memory."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Advice
from oomscope.frozen import frozen
from oomscope.model import FrameKind, frame_kind
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.common.storing import line_of_advice
from oomscope.rendering.html.culprit import Culprit, culprit
from oomscope.rendering.html.live_parts import live_parts
from oomscope.rendering.html.memory_bars import MemoryBar, memory_bar
from oomscope.rendering.html.percent import percent, share
from oomscope.rendering.html.small_timeline import Strip, draw_strip
from oomscope.rendering.html.svg import StyleSheet
from oomscope.wording import page as words
from oomscope.wording.clean import clean
from oomscope.wording.opening import split_verdict
from oomscope.wording.paths import Shorten
from oomscope.wording.verdict_text import advice_text
from oomscope.wording.window import shown_part

_QUOTED = re.compile(r"`([^`]{1,200})`")
_SIZE = re.compile(r"(\d) ([KMGT]iB)\b")
_DOT = re.compile(r"(?<=\w)\.(?=[A-Za-z_])")
_LONG_CODE = 30
"""Characters of code that a phone may have to break: then behind a dot."""
_LONGEST = 500
"""Characters of a piece of advice; a headline is clean and bounded already."""


@frozen
class HeldPart:
    """A part of the bar: its words, its colour (a CSS class) with an opacity, its bytes and its place."""

    label: str
    colour: str
    opacity: float
    bytes: int
    x: str
    width: str
    share: str


@frozen
class Fix:
    """One remedy: what to do, what it gives, and the line to change; None where that is not known."""

    action: Markup
    effect: str
    advice: Advice
    at: Location | None

    @property
    def is_own(self) -> bool:
        """Whether that line is the reader's, and not a library's."""
        return self.at is not None and frame_kind(self.at.file) is FrameKind.OWN


@frozen
class FirstScreen:
    """Everything above the fold.

    Attributes:
        occasion: what happened, in parts.
        part: that only a part of the recording is shown, and which; None where it is all of it.
        headline: the verdict's first sentence, and what follows it.
        culprit: the line to look at.
        fix: the best remedy; None where there is none, or nothing failed.
        second: the next one, if it is worth the room.
        others: how many more there are.
        parts: the memory that PyTorch holds and may have, in parts.
        limit: the limit in words.
        asked: bytes of the failed request, which needed one piece.
        asked_at: where it was made, if the line that is shown is not that one.
        largest: the largest free piece, where all that was free would have been enough; None elsewhere.
        strip: the small timeline; None without a history.
        sureness: the last line, in parts.
        unsure: the confidence in the cause, where that is not high; said at the top as well.
    """

    occasion: tuple[str, ...]
    part: str | None
    headline: tuple[Markup, Markup]
    culprit: Culprit | None
    fix: Fix | None
    second: Fix | None
    others: str
    parts: tuple[HeldPart, ...]
    limit: str
    asked: int | None
    largest: int | None
    strip: Strip | None
    sureness: tuple[str, ...]
    unsure: str = ""
    asked_at: str = ""


def first_screen(findings: Findings, shorten: Shorten, sources: Sources, sheet: StyleSheet) -> FirstScreen:
    """What the page opens with."""
    device = findings.main
    first, rest = split_verdict(findings)
    headline = quoted(first), quoted(rest)
    if device is None:
        return FirstScreen(
            words.occasion_parts(findings), None, headline, None, None, None, "", (), "", None, None, None, ()
        )
    shown = culprit(device, shorten, sources)
    held, bar, proposed = live_parts(device, shorten), memory_bar(device), fixes(device, sources)
    advice = device.oom.verdict.advice if device.oom is not None else ()
    second = _second(device, proposed)
    named = [(part.label, f"k-{part.colour.variable}", part.opacity, part.bytes) for part in held.parts] + [
        (part.label, f"e-{part.key}", 1.0, part.bytes) for part in bar.parts if part.key != "allocated"
    ]
    return FirstScreen(
        occasion=words.occasion_parts(findings),
        part=shown_part(findings),
        headline=headline,
        culprit=shown,
        fix=next(iter(proposed), None),
        second=second,
        others=words.else_text(advice, told=1 if second is None else 2),
        parts=_placed(named),
        limit=_limit(device, bar),
        asked=bar.asked,
        largest=_largest_piece(device, bar),
        strip=draw_strip(findings, device, held, sheet),
        sureness=words.sureness(findings),
        unsure=words.unsure(device),
        asked_at="" if device.oom is None else words.asked_elsewhere(device.oom, None if shown is None else shown.full),
    )


def fixes(device: DeviceFindings, sources: Sources) -> tuple[Fix, ...]:
    """All remedies that would help, best first."""
    advice = device.oom.verdict.advice if device.oom is not None else ()
    return tuple(_fix(device, item, sources) for item in advice if not item.refuted)


def _second(device: DeviceFindings, proposed: tuple[Fix, ...]) -> Fix | None:
    """The remedy beside the best one; what only delays the failure waits below, where the best one ends it."""
    second = next(iter(proposed[1:]), None)
    if second is None or device.oom is None or not words.only_delays(second.advice, device.oom):
        return second
    return None if proposed[0].advice.enough else second


def quoted(text: str) -> Markup:
    """A clean sentence of ours with what stands in backticks as code, and sizes that no line break divides."""
    text = _SIZE.sub("\\1\N{NO-BREAK SPACE}\\2", str(escape(text)))
    return Markup(_QUOTED.sub(_code, text))  # noqa: S704 - escaped before


def _code(match: re.Match[str]) -> str:
    text = match[1] if len(match[1]) <= _LONG_CODE else _DOT.sub(".<wbr>", match[1])
    return f"<code>{text}</code>"


def _fix(device: DeviceFindings, item: Advice, sources: Sources) -> Fix:
    assert device.oom is not None
    action = quoted(clean(advice_text(item).action, _LONGEST))
    return Fix(action, words.effect_text(item, device.oom), item, line_of_advice(device.oom, item, sources))


def _largest_piece(device: DeviceFindings, bar: MemoryBar) -> int | None:
    """The largest free piece, unless the headline tells it: the bar alone shows only how much was free."""
    oom = device.oom
    if oom is None or bar.asked is None or oom.free.usable < bar.asked or oom.free.largest >= bar.asked:
        return None
    return None if any("largest" in note.values for note in oom.verdict.headline) else oom.free.largest


def _limit(device: DeviceFindings, bar: MemoryBar) -> str:
    capped = device.oom is not None and (
        device.oom.limit.source == "bracket" or "memory_fraction_cap" in device.oom.verdict.contributing
    )
    return words.limit_note(bar.limit, bar.beyond, capped=capped)


def _placed(named: list[tuple[str, str, float, int]]) -> tuple[HeldPart, ...]:
    total, start, parts = sum(count for *_, count in named), 0, []
    for text, colour, opacity, count in named:
        if count > 0 and total > 0:
            place = percent(start, total), percent(count, total), share(count, total)
            parts.append(HeldPart(text, colour, opacity, count, *place))
            start += count
    return tuple(parts)
