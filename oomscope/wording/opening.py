"""What a report opens with: what happened in a line, the verdict in a sentence or two, and what replays say of it."""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.remedies.replays import calm_citation
from oomscope.analysis.verdict.records import Oom
from oomscope.units import format_bytes
from oomscope.wording import cut
from oomscope.wording.asked import asked_text, within_text
from oomscope.wording.loops import step_underway
from oomscope.wording.paths import Shorten
from oomscope.wording.places import place
from oomscope.wording.refused import refused_occasion, refused_verdict
from oomscope.wording.verdict_text import headline, sentences

_CHANGES = frozenset({"verdict.replay.served", "verdict.replay.served.grows", "verdict.replay.depends"})
"""What replays say where another setting serves the request, or may."""

WAITING_SHARE = 20
"""One in so many active bytes must wait for a stream to be worth a word: a block that is freed is active for one
entry more, so the two peaks always differ a little."""


def occasion(findings: Findings, shorten: Shorten) -> str:
    """What happened, in a line above the verdict: ``Out of memory · cuda:0 · 1.17 GiB requested at f (a.py:1)``."""
    device = findings.main
    if device is None and findings.refused is not None:
        return refused_occasion(findings.refused)
    if device is None:
        return "No GPU memory in this snapshot" if not cut.is_cut(findings) else cut.what_happened(findings)
    if findings.refused is not None:
        return f"{refused_occasion(findings.refused)} · {device.name}"
    if device.oom is None and cut.is_cut(findings):
        return f"{cut.what_happened(findings)} · {device.name}"
    if device.oom is None:
        calm = "No out-of-memory error" + (" in this part" if device.part is not None else "")
        what = calm if device.history.moves else "It is not known whether a request failed"
        return f"{what} · {device.name}"
    parts = [
        "Out of memory" + (", then recovered" if device.oom.recovered else ""),
        device.name,
        within_text(device.oom),
        f"{format_bytes(device.oom.requested)} requested {_asked(device.oom, shorten)}".rstrip(),
    ]
    return " · ".join(filter(None, parts))


def _asked(oom: Oom, shorten: Shorten) -> str:
    if oom.verdict.asked is not None:
        return asked_text(oom.verdict.asked, shorten)
    where = oom.caller or oom.site
    return f"at {place(where, shorten)}" if where else ""


def verdict_text(findings: Findings) -> str:
    """The verdict: one sentence, or two."""
    device = findings.main
    if findings.refused is not None:
        return refused_verdict(findings)
    if device is None:
        where = " before the place where its file is cut off" if cut.is_cut(findings) else ""
        return f"The snapshot contains no segments and no trace entries{where}."
    if device.oom is not None:
        return headline(device.oom.verdict)
    if cut.is_cut(findings):
        return cut.verdict(findings, device)
    if device.peak is None:
        usage = device.usage
        return (
            f"No history was recorded, so it is not known whether a request failed: when the snapshot was taken, "
            f"{format_bytes(usage.allocated)} was allocated of {format_bytes(usage.reserved)} reserved."
        )
    peak = device.peak
    about = "" if device.exact else "about "
    text = (
        f"No OOM: allocated memory peaked at {about}{format_bytes(peak.allocated)}{_peak_step(device)}, "
        f"reserved memory at {format_bytes(peak.reserved)}"
    )
    if (waiting := peak.active - peak.allocated) * WAITING_SHARE > peak.active:
        text += f"; at least {format_bytes(waiting)} had been freed and was waiting for another stream"
    elif (spare := peak.reserved - peak.active) > 0:
        text += f", {format_bytes(spare)} more than was ever active"
    return f"{text}."


def split_verdict(findings: Findings) -> tuple[str, str]:
    """The verdict as its first sentence, and what follows it."""
    first, stop, rest = verdict_text(findings).partition(". ")
    return first + stop.rstrip(), rest


def replay_text(findings: Findings) -> str | None:
    """What other settings of the allocator would have done, by replay; None where there is none to trust."""
    device = findings.main
    if device is None:
        return None
    if device.oom is not None:
        return sentences(device.oom.verdict.replay, 600) or None
    answer = next((one for one in findings.whatif if one.device == device.device), None)
    return sentences(calm_citation(answer), 600) or None


def changing_replays(findings: Findings) -> str | None:
    """What `replay_text` says, only where a setting changes the outcome of the request or the peak of the run."""
    device = findings.main
    if device is not None and device.oom is not None:
        replay = device.oom.verdict.replay
        if not replay or replay[0].code not in _CHANGES:
            return None
        return sentences(tuple(note for note in replay if note.code in _CHANGES), 600)
    return replay_text(findings)


def _peak_step(device: DeviceFindings) -> str:
    peak = device.peak
    assert peak is not None
    underway = step_underway(device, peak.allocated_entry)
    return f" {underway}" if underway.startswith("after ") else f" in {underway}" if underway else ""
