"""The words of the report: what causes, categories and the rest are called, the same in every format."""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.records import At, Growth, Limit, Location, Oom, Pin, SiteUse, Steps
from oomscope.analysis.remedies.replays import calm_citation
from oomscope.units import format_bytes, format_count, format_duration, plural
from oomscope.wording.clean import clean
from oomscope.wording.paths import Shorten

CAUSE_LABELS = {
    "oversized_request": "a request that no card of this size could serve",
    "growth": "memory that grows from step to step",
    "private_pools": "free memory walled in private pools",
    "other_stream": "free memory that belongs to another stream",
    "outside_allocator": "memory that PyTorch's allocator does not own",
    "fragmentation": "fragmentation",
    "capacity": "capacity",
}
CATEGORY_LABELS = {
    "parameter": "parameters",
    "gradient": "gradients",
    "optimizer_state": "optimizer state",
    "buffer": "buffers",
    "activation": "activations",
    "temporary": "temporaries",
    "input": "inputs",
    "workspace": "workspaces",
    "unknown": "unknown",
}
HOLDER_LABELS = CATEGORY_LABELS | {"graph": "autograd graph", "tensor": "tensors", "in_flight": "call in progress"}
PHASE_LABELS = {
    "before_recording": "before the recording",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "other": "elsewhere",
}
DRIVER_LABELS = {
    "activations": "activations",
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer_state": "optimizer state",
    "optimizer_temporaries": "temporaries of the optimizer",
    "logits": "logits",
    "attention_scores": "attention scores",
    "kv_cache": "key-value cache",
    "retained_graph": "autograd graph kept from earlier steps",
    "accumulated_tensors": "tensors kept from earlier steps",
    "duplicate_model": "second copy of the model",
    "workspace": "workspaces",
    "unknown": "unknown",
}
CONTRIBUTING_LABELS = {
    "memory_fraction_cap": "a cap on this process (the device itself still had room)",
}
CONFIDENCE_LABELS = {"high": "high confidence", "medium": "medium confidence", "low": "low confidence"}
CATEGORIES_SOURCE_LABELS = {
    "recorded": "as the recording names them",
    "inferred": "inferred from stacks and timing",
    "mixed": "partly named by the recording, partly inferred",
}
LIMIT_LABELS = {
    "recorded": "known from the recording",
    "bracket": "a cap, known within bounds",
    "device": "what the device had left",
}
GROWTH_LABELS = {
    "generations": "more of the same stay alive",
    "reallocation": "made anew, ever larger",
    "time": "rises with time",
}
_STEADY = 0.05
"""High-water marks that differ by more are not called steady."""
UNLABELLED = "no frames were recorded"


def words(slug: str, labels: dict[str, str]) -> str:
    """What `slug` is called; a slug without a word of its own is shown as it is."""
    return labels.get(slug) or clean(slug.replace("_", " "))


def place(location: Location, shorten: Shorten) -> str:
    """``fill_cache (workloads.py:227)``."""
    return f"{clean(location.function, 120)} ({file_line(location, shorten)})"


def file_line(location: Location, shorten: Shorten) -> str:
    """``workloads.py:227``."""
    return f"{shorten(location.file)}:{location.line}"


def site_text(item: SiteUse | Pin | Growth, shorten: Shorten) -> str:
    """The site of `item`, or why it has none."""
    return place(item.site, shorten) if item.site else clean(item.label or UNLABELLED)


def caller_text(item: SiteUse | Pin | Growth | Oom, shorten: Shorten) -> str | None:
    """The reader's own code behind `item`, where that is another line than the site."""
    return place(item.caller, shorten) if item.caller and item.caller != item.site else None


def occasion(findings: Findings, shorten: Shorten) -> str:
    """What happened, in a line above the verdict: ``Out of memory · cuda:0 · 1.17 GiB asked for at f (a.py:1)``."""
    device = findings.main
    if device is None:
        return "No GPU memory in this snapshot"
    if device.oom is None:
        what = "No out-of-memory error" if device.history.moves else "Not known whether a request failed"
        return f"{what} · {device.name}"
    where = device.oom.caller or device.oom.site
    parts = [
        "Out of memory" + (", then recovered" if device.oom.recovered else ""),
        device.name,
        f"{format_bytes(device.oom.requested)} asked for" + (f" at {place(where, shorten)}" if where else ""),
    ]
    return " · ".join(parts)


def sentence(findings: Findings) -> str:
    """The verdict: one sentence, or two."""
    device = findings.main
    if device is None:
        return "The snapshot holds neither segments nor trace entries of any device."
    if device.oom is not None:
        return clean(device.oom.verdict.headline, 900)
    if device.peak is None:
        usage = device.usage
        return (
            "Without a history it is not known whether a request failed: at the end "
            f"{format_bytes(usage.allocated)} were allocated of {format_bytes(usage.reserved)} reserved."
        )
    peak = device.peak
    text = (
        f"No OOM here: at its peak the run held {'' if device.exact else 'about '}{format_bytes(peak.allocated)}"
        f"{_peak_step(device)}. At most {format_bytes(peak.reserved)} were reserved"
    )
    # A block that is freed is active for one entry more; only what waits longer lifts one peak above the other.
    if (waiting := peak.active - peak.allocated) * 20 > peak.active:
        text += f", with at least {format_bytes(waiting)} that were freed and waited for another stream"
    elif (spare := peak.reserved - peak.active) > 0:
        text += f", {format_bytes(spare)} more than were ever active"
    return f"{text}."


def split_sentence(findings: Findings) -> tuple[str, str]:
    """The verdict as its first sentence, and what follows it."""
    first, stop, rest = sentence(findings).partition(". ")
    return first + stop.rstrip(), rest


def replay(findings: Findings) -> str | None:
    """What other settings of the allocator would have done, by replay; None where there is none to trust."""
    device = findings.main
    if device is None:
        return None
    if device.oom is not None:
        return None if device.oom.verdict.replay is None else clean(device.oom.verdict.replay, 600)
    answer = next((one for one in findings.whatif if one.device == device.device), None)
    text = calm_citation(answer)
    return None if text is None else clean(text, 600)


def _peak_step(device: DeviceFindings) -> str:
    peak = device.peak
    assert peak is not None
    name = next((step.name for step in device.steps.steps if step.begin <= peak.allocated_entry <= step.end), None)
    return f", in step {clean(name, 60)}" if name is not None else ""


def instant(at: At, entries: int) -> str:
    """Which instant the attribution is about."""
    # Entries are counted from 0, as --at and the JSON report count them: "2,973 of 2,974" would puzzle.
    last = entries > 0 and at.entry == entries - 1
    number = f"entry {format_count(at.entry)} of 0–{format_count(entries - 1)}"
    where = f"the last of {plural(entries, 'entry', 'entries')}" if last else number
    if at.kind == "end" or not entries:
        return "at the end of the snapshot"
    return {"oom": f"at the OOM, {where}", "peak": f"at the peak, {where}"}.get(at.kind, f"at {where}")


def elsewhere(at: At, device: DeviceFindings) -> str | None:
    """Where the verdict is about another instant than the figures: a sentence that says so."""
    if device.oom is None or device.oom.entry == device.at_entry:
        return None
    where = instant(at, device.history.entries)
    verdict = f"the OOM, entry {format_count(device.oom.entry)}"
    return f"The verdict and its numbers are about {verdict}; memory and who holds it are shown {where}."


def before_oom(device: DeviceFindings, entry: int) -> str:
    """When `entry` happened, told from the OOM: ``2.31 s before``; by its number where there is no OOM or no time."""
    trace, oom = device.history.trace, device.oom
    if oom is None or oom.time_us is None or not trace.timed or not 0 <= entry < len(trace):
        return "before the recording" if entry < 0 else f"entry {format_count(entry)}"
    distance = oom.time_us - int(trace.time_us[entry])
    return f"{format_duration(distance)} {'before' if distance >= 0 else 'after'}"


def limit_text(limit: Limit) -> str:
    """``8.00 GiB``, or the bracket: ``between 7.11 GiB and 8.31 GiB``."""
    if limit.high is None or limit.high == limit.low:
        return format_bytes(limit.low)
    return f"between {format_bytes(limit.low)} and {format_bytes(limit.high)}"


def growth_text(growth: Growth, device: DeviceFindings) -> str:
    """How a site grows: ``+20.0 MiB a step, 33 alive, since 2.31 s before the OOM``."""
    step = "an entry" if growth.kind == "time" else "a step"
    alive = f", {growth.generations} alive" if growth.kind == "generations" else ""
    since = before_oom(device, growth.since_entry)
    since += " the OOM" if since.endswith(" before") else ""
    return f"+{format_bytes(growth.bytes_per_step)} {step}{alive}, since {since}"


def no_growth(steps: Steps) -> str:
    """The one line of a report without growth."""
    if len(steps.steps) < 2:
        return "No growth was found; without steps in the recording, it is looked for over time only."
    peaks = [step.peak_allocated for step in steps.steps[1:]]
    if len(peaks) < 2:
        return f"No growth was found in {plural(steps.count, 'step')}."
    spread = (max(peaks) - min(peaks)) / max(max(peaks), 1)
    if spread > _STEADY:
        return (
            "No site was found whose bytes rise from step to step; the high-water marks of the "
            f"{steps.count} steps differ by up to {spread:.0%}."
        )
    spread = max(spread, 0.001)
    return f"No growth: {plural(steps.count, 'step')}, the same high-water mark to {spread:.1%} after the first."


def certainty(findings: Findings) -> list[str]:
    """How sure the report is, and what it cannot know: one sentence an item."""
    recording, device = findings.recording, findings.main
    # The first note tells of the history, with its entries and its span.
    items = [clean(note, 500) for note in recording.notes[:1]]
    if device is not None and device.oom is not None:
        verdict = device.oom.verdict
        confidence = words(verdict.confidence, CONFIDENCE_LABELS)
        items.insert(0, f"Cause: {words(verdict.cause, CAUSE_LABELS)}, with {confidence}.")
    if recording.unattributed_live_bytes:
        items.append(f"{format_bytes(recording.unattributed_live_bytes)} of what is allocated have no stack.")
    if device is not None:
        items += _balance(device)
    return list(dict.fromkeys([*items, *(clean(note, 500) for note in (*recording.notes, *findings.snapshot.notes))]))


_NOT_EXACT = (
    "A replay of the recorded run departs from it: it was recorded by another allocator than the one modelled here, or "
    "entries are missing. Figures before the end are estimates."
)


def _balance(device: DeviceFindings) -> list[str]:
    reconciliation = device.reconciliation
    unaccounted = reconciliation.unaccounted_bytes
    items = [
        _NOT_EXACT
        if not device.exact
        else "Everything adds up: 0 bytes unaccounted for."
        if unaccounted == 0
        else f"{format_bytes(unaccounted)} are unaccounted for: the snapshot's own parts do not agree."
    ]
    if reconciliation.uncertain_bytes:
        items.append(f"Before the end the curves may be low by up to {format_bytes(reconciliation.uncertain_bytes)}.")
    items += [clean(note, 500) for note in reconciliation.notes]
    if device.oom is not None:
        items += [clean(item, 500) for item in device.oom.verdict.cannot_know]
    return items
