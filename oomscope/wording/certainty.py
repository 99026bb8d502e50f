"""How sure a report is, and what it cannot know."""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.units import format_bytes
from oomscope.wording import say
from oomscope.wording.cause_labels import cause_label
from oomscope.wording.clean import clean
from oomscope.wording.verdict_text import said_confidence

_LONGEST = 500
_NOT_EXACT = (
    "A replay of the recorded run departs from it: it was recorded by another allocator than the one modelled here, or "
    "entries are missing. Figures before the end are estimates."
)


def certainty(findings: Findings) -> list[str]:
    """How sure the report is, and what it cannot know: one sentence an item."""
    recording, device, odd = findings.recording, findings.main, findings.snapshot.notes
    said = [clean(say(note), _LONGEST) for note in recording.notes]
    # The first note tells of the history, with its entries and its span.
    items = [clean(say(note), _LONGEST) for note in odd if note.code == "reading.cut"] + said[:1]
    if device is not None and device.oom is not None:
        verdict = device.oom.verdict
        items.insert(0, f"Cause: {cause_label(verdict)} ({said_confidence(verdict)}).")
    if recording.unattributed_live_bytes:
        items.append(
            f"{format_bytes(recording.unattributed_live_bytes)} of the allocated memory was recorded without a stack."
        )
    if device is not None:
        items += _balance(device)
    items += [*said, *(clean(say(note), _LONGEST) for note in odd)]
    return list(dict.fromkeys(items))


def _balance(device: DeviceFindings) -> list[str]:
    reconciliation = device.reconciliation
    unaccounted = reconciliation.unaccounted_bytes
    items = []
    if not device.exact:
        items.append(_NOT_EXACT)
    elif unaccounted:
        items.append(f"{format_bytes(unaccounted)} unaccounted for: trace and segments of this snapshot disagree.")
    elif device.history.moves:
        items.append("Trace and segments agree: 0 bytes unaccounted for.")
    if reconciliation.uncertain_bytes:
        items.append(
            f"Before the end, allocated memory may be up to {format_bytes(reconciliation.uncertain_bytes)} higher "
            "than shown."
        )
    items += [clean(say(note), _LONGEST) for note in reconciliation.notes]
    if device.oom is not None:
        items += [clean(say(item), _LONGEST) for item in device.oom.verdict.cannot_know]
    return items
