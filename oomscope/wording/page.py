"""What stands on the first screen of the page: short lines around the verdict."""

from __future__ import annotations

from collections.abc import Callable

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.memory.records import Pin
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Advice, Oom
from oomscope.units import format_bytes, plural
from oomscope.wording import cut
from oomscope.wording.clean import clean
from oomscope.wording.labels import CAUSE_LABELS, CONFIDENCE_LABELS, DRIVER_LABELS, label

RECORDED = {
    "full": "recorded from the start, nothing missing",
    "wrapped": "the oldest entries were overwritten",
    "late": "recorded from the middle of the run",
    "state_only": "only the last instant was recorded",
    "none": "no history was recorded",
}
PART_LABELS = DRIVER_LABELS | {"retained_graph": "kept graphs", "accumulated_tensors": "kept tensors"}
"""Shorter: they stand in a legend, several in a row."""
HELD_HERE = "in the function that holds it"
"""What is known of a line that a holder's function was at: it need not be the line that stored anything."""
EVERYTHING_ELSE = "everything else"
PHASE_PHRASES = {
    "forward": "in the forward pass",
    "backward": "in the backward pass",
    "optimizer": "in the optimizer step",
}


def occasion_parts(findings: Findings) -> tuple[str, ...]:
    """What happened, where, and how far the program had come: the line above the headline, in parts."""
    device = findings.main
    if device is None:
        return ("No GPU memory in this snapshot" if not cut.is_cut(findings) else cut.what_happened(findings),)
    oom = device.oom
    if oom is None and cut.is_cut(findings):
        return (cut.what_happened(findings), device.name)
    if oom is None:
        return ("No out-of-memory error" if device.history.moves else "No history was recorded", device.name)
    happened = "Out of memory" + (", then recovered" if oom.recovered else "")
    return tuple(filter(None, (happened, device.name, _how_far(device, oom))))


def _how_far(device: DeviceFindings, oom: Oom) -> str:
    known = oom.verdict.failing_pass
    if known is not None:
        number = f"pass {known.index + 1:,}"
        return f"{number}, after {known.completed:,} that fitted" if known.completed else f"{number}, the first"
    name = next((step.name for step in device.steps.steps if step.begin <= oom.entry <= step.end), None)
    return f"step {clean(name, 40)}" if name is not None else ""


def growth_note(growth: Growth, per_pass: int | None = None) -> str:
    """What a line whose memory grows does; `per_pass`: what all that it calls leaves behind."""
    if per_pass:
        return f"leaves {format_bytes(per_pass)} behind every pass"
    if growth.kind == "time":
        return f"{format_bytes(growth.live_bytes)} made here is never freed"
    return f"leaves {format_bytes(growth.bytes_per_step)} behind every pass"


def pin_note(pin: Pin) -> str:
    """What a line does whose blocks keep holes open."""
    return f"{plural(pin.blocks, 'block')} made here {'keeps' if pin.blocks == 1 else 'keep'} the holes open"


def made_note(bytes_: int) -> str:
    """What a line does that made most of what is live."""
    return f"{format_bytes(bytes_)} was allocated here"


def asked_note(oom: Oom) -> str:
    """What the line does that asked for too much."""
    phase = PHASE_PHRASES.get(oom.verdict.asked.phase, "") if oom.verdict.asked else ""
    return f"asked for {format_bytes(oom.requested)} {phase}".rstrip()


def effect_text(advice: Advice, oom: Oom) -> str:
    """What a remedy gives: ``frees 9.77 GiB · enough alone``; empty where neither is known."""
    saves = f"frees {format_bytes(advice.saves_bytes)}" if advice.saves_bytes else ""
    if advice.enough:
        enough = "enough alone"
    elif advice.enough is False:
        short = missing(advice, oom)
        enough = f"not enough alone: still {format_bytes(short)} short" if short else "not enough alone"
    else:
        enough = "not certain to be enough alone" if saves else ""
    return " · ".join(filter(None, (saves, enough)))


def missing(advice: Advice, oom: Oom) -> int | None:
    """By how many bytes the request would still fail after `advice`, with all usable free bytes in one piece."""
    if advice.saves_bytes is None:
        return None
    spare = advice.saves_bytes + oom.free.usable + oom.limit.low - oom.totals.reserved - oom.alloc_size
    return -spare if spare < 0 else None


def else_text(advice: tuple[Advice, ...]) -> str:
    """What other advice there is: ``2 more · 3 that would not have helped``."""
    more = sum(not item.refuted for item in advice) - 1
    refuted = sum(item.refuted for item in advice)
    parts = [f"{more} more" if more > 0 else "", f"{refuted} that would not have helped" if refuted else ""]
    return " · ".join(filter(None, parts))


def part_of_line(slug: str, where: Location | None, shorten: Callable[[str], str]) -> str:
    """What one line made of a kind of memory: ``activations: mlp (workloads.py:29)``; None: all other lines."""
    name = label(slug, PART_LABELS)
    if where is None:
        return f"{name}, other lines"
    name = "from" if slug == "unknown" else f"{name}:"
    file = shorten(where.file).replace("\\", "/").rpartition("/")[2]
    return f"{name} {clean(where.function, 40)} ({clean(file, 60)}:{where.line})"


def sureness(findings: Findings) -> tuple[str, ...]:
    """The line below the first screen, in parts: the cause, how sure it is, and how well the run was recorded."""
    device = findings.main
    if device is None:
        return ()
    parts = []
    if device.oom is not None:
        verdict = device.oom.verdict
        parts = [label(verdict.cause, CAUSE_LABELS), label(verdict.confidence, CONFIDENCE_LABELS)]
    if cut.is_cut(findings):
        parts.append("the file was cut off")
    parts.append(RECORDED.get(findings.recording.history, findings.recording.history))
    if not device.exact:
        parts.append("figures before the end are estimates")
    elif device.reconciliation.unaccounted_bytes:
        parts.append(f"{format_bytes(abs(device.reconciliation.unaccounted_bytes))} unaccounted for")
    return tuple(parts)


def limit_note(limit: int | None, beyond: int | None, *, capped: bool) -> str:
    """The limit at the end of a bar: ``limit 11.2 GiB (cap; the card has 128 GiB more)``, or what is free."""
    if limit is None:
        return f"the card has {format_bytes(beyond)} free" if beyond else ""
    more = f"the card has {format_bytes(beyond)} more" if beyond else ""
    within = "; ".join(filter(None, ("a cap" if capped else "", more)))
    return f"limit {format_bytes(limit)}" + (f" ({within})" if within else "")
