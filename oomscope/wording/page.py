"""What stands on the first screen of the page: short lines around the verdict."""

from __future__ import annotations

from collections.abc import Callable

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.memory.records import Pin
from oomscope.analysis.passes.records import FailingPass, Growth
from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Advice, Oom
from oomscope.model import FrameKind, frame_kind
from oomscope.units import format_bytes, plural
from oomscope.wording import cut
from oomscope.wording.asked import asked_text, within_text
from oomscope.wording.cause_labels import cause_label
from oomscope.wording.clean import clean
from oomscope.wording.labels import CONFIDENCE_LABELS, DRIVER_LABELS, label
from oomscope.wording.loops import counted, counts_others, step_underway
from oomscope.wording.refused import refused_what
from oomscope.wording.template import MODULE, place, said_place, said_shape, without_inner_workings
from oomscope.wording.verdict_text import said_confidence
from oomscope.wording.window import brief_part

RECORDED = {
    "full": "every allocation was recorded",
    "wrapped": "the beginning of the run is no longer in the recording",
    "late": "recorded from the middle of the run",
    "state_only": "only the last instant was recorded",
    "none": "no history was recorded",
}
_DOUBTS = ("recording.no_completed_free", "recording.no_stacks")
"""Notes after which nobody can say that nothing is missing."""
UNDERWAY = "made_underway"
"""What the pass underway has made, beside what earlier ones have left."""
PART_LABELS = DRIVER_LABELS | {
    "retained_graph": "kept graphs",
    "accumulated_tensors": "kept tensors",
    UNDERWAY: "this pass so far",
}
"""Shorter: they stand in a legend, several in a row."""
EVERYTHING_ELSE = "everything else"
LEFT_OVER = "left over"
"""What earlier work has left, where nobody knows what keeps it."""
CYCLE = "unreachable cycle"
OTHER_LINES = "all other lines"
PHASE_PHRASES = {
    "forward": "in the forward pass",
    "backward": "in the backward pass",
    "optimizer": "in the optimizer step",
}


def given_back(zero: str, *, is_last: bool) -> str:
    """What is called that was live at other times, but not at the instant that `zero` names."""
    return f"freed before {zero}" if is_last else f"not there at {zero}"


_NAMES_THE_LOOP = frozenset({"causes.pass.after", "causes.pass.first", "causes.pass.gathers"})
_TELLS_WHAT_FITTED = frozenset({"causes.pass.after", "causes.pass.longer", "causes.pass.keeps", "causes.pass.gathers"})
"""Sentences of the headline that the line above it need not repeat."""


def occasion_parts(findings: Findings) -> tuple[str, ...]:
    """What happened, and how far the program had come: the line above the headline, in parts."""
    device = findings.main
    if findings.refused is not None:
        parts = ("Out of memory", refused_what(findings.refused))
        return parts if device is None else (*parts, device.name)
    if device is None:
        return ("No GPU memory in this snapshot" if not cut.is_cut(findings) else cut.what_happened(findings),)
    oom = device.oom
    if oom is None and cut.is_cut(findings):
        return (cut.what_happened(findings), device.name)
    if oom is None:
        calm = "No out-of-memory error" + (" in this part" if device.part is not None else "")
        return (calm if device.history.moves else "No history was recorded", device.name)
    happened = "Out of memory" + (", then recovered" if oom.recovered else "")
    return tuple(filter(None, (happened, device.name, within_text(oom), _how_far(device, oom))))


def asked_elsewhere(oom: Oom, shown: str | None) -> str:
    """Where the request was made, if the line that the page shows is not that one, or has called a library for it.

    Args:
        oom: the failure.
        shown: the line, as ``file:line`` with the whole path; None where the page shows none.
    """
    where = oom.caller or oom.site
    if shown is None:
        return ""
    if where is None:
        asked = oom.verdict.asked
        return "" if asked is None else asked_text(asked, lambda file: file.replace("\\", "/").rpartition("/")[2])
    if shown == f"{clean(where.file, 400)}:{where.line}":
        if oom.site in (None, where):
            return ""
        where = oom.site
    return f"at {place(where)}"


def _how_far(device: DeviceFindings, oom: Oom) -> str:
    known = oom.verdict.failing_pass
    if known is None:
        asked = oom.verdict.asked
        return step_underway(device, oom.entry) or (f"the first {asked.phase} pass" if asked and asked.is_first else "")
    if counts_others(oom, known.completed):
        loops = {one.loop for one in device.growth if one.loop is not None}
        # Two counts, one of passes of other runs of the loop or of another one, only puzzle.
        return f"one pass = one round of {_loop(next(iter(loops)))}" if len(loops) == 1 else ""
    finished = counted(oom, known)
    number = f"at least pass {finished + 1:,}" if known.is_part else f"pass {finished + 1:,}"
    told = {note.code for note in oom.verdict.headline}
    loop = known.loop
    if told.isdisjoint(_NAMES_THE_LOOP) and loop is not None and frame_kind(loop.file) is FrameKind.OWN:
        number = f"{number} of {_loop(loop)}"  # a trainer's loop tells nobody more
    if known.is_first:
        return f"{number}, the first"
    if not finished:
        return ""
    if finished in oom.verdict.told_passes:
        return number  # the headline says so
    failed = any(_fails_earlier(other.verdict.failing_pass, known) for other in device.ooms)
    return number if failed or told & _TELLS_WHAT_FITTED else f"{number}, after {finished:,} that fitted"


def _loop(where: Location) -> str:
    """A loop by its function, without a line: the first one that allocates need not be the loop's own."""
    return f"the loop in {place(where) if where.function == MODULE else f'{where.function}()'}"


def _fails_earlier(other: FailingPass | None, known: FailingPass) -> bool:
    return other is not None and other.loop == known.loop and other.before + other.index < known.before + known.index


def stored_note(name: str, per_pass: int | None = None, *, kept: bool = False) -> str:
    """What a line does that stores into `name`.

    Args:
        name: what a person calls the object.
        per_pass: how much more that is each time.
        kept: whether it is not what the line stores that keeps the memory, but an exception within it.
    """
    if kept:
        return f"kept in {name}, filled here"
    more = f", {format_bytes(per_pass)} more every pass" if per_pass else ""
    return f"stored in {name} here{more}"


def before_note(slug: str, name: str | None, kind: str, made: Location | None = None) -> str:
    """What is to be done before a line.

    Args:
        slug: of the advice.
        name: of what a person would let go of.
        kind: of the work underway there.
        made: the line that made most of what it keeps.
    """
    is_garbage = slug == "collect_garbage"
    what = "call gc.collect()" if is_garbage else f"let go of {name or 'it'}"
    if made is not None and not is_garbage:
        file = clean(made.file.replace("\\", "/").rpartition("/")[2], 60)
        what += f" (made at {file}:{made.line})"
    return f"{what} before this {'line' if kind == 'call' else kind}"


def growth_note(growth: Growth, where: Location, per_pass: int | None = None, *, alone: bool = True) -> str:
    """What a line has to do with memory that grows: it allocates it, or calls what does; neither need keep it.

    Args:
        growth: what grows.
        where: the line.
        per_pass: what all that is called there leaves behind.
        alone: whether hardly any of it comes from other lines.
    """
    made = "allocated here" if where == growth.site else "called here"
    if growth.kind == "time" and not per_pass:
        return f"{made}: {format_bytes(growth.live_bytes)} that is never freed"
    if not alone:
        made += ", and elsewhere"
    return f"{made}: {format_bytes(per_pass or growth.bytes_per_step)} more stays every pass"


TWO_ALIVE = "here the pass before is still alive"
"""What is said of the line of a loop that goes on."""


LEAVES_A_MODEL = "each pass that begins here leaves a model"
"""What is said of the line of a loop whose passes make models that stay."""
LARGER_CALL = "called here: asks for more than ever before"
"""What is said of the line whose call asks for more than the calls of the same function elsewhere."""


def larger_note(found: FailingPass) -> str:
    """What is said of the line that brings in what makes a pass larger than those before."""
    recorded = "in any pass recorded before" if found.is_part else None
    if found.input is None:
        return f"from here on, more memory than {recorded or 'in any pass before'}"
    name = without_inner_workings(found.input.variable).rpartition(": ")[2]
    return f"{name} is larger here than {recorded or 'ever before'}: {said_shape(found.input.shape)}"


def pin_note(pin: Pin) -> str:
    """What a line does whose blocks keep holes open."""
    return f"{plural(pin.blocks, 'block')} made here {'lies' if pin.blocks == 1 else 'lie'} between the free pieces"


def kept_note(pin: Pin) -> str:
    """What a line does whose blocks keep another stream's memory."""
    return f"what it made keeps {format_bytes(pin.alone_bytes)} for another stream"


def made_note(bytes_: int) -> str:
    """What a line does that made most of what is live."""
    return f"{format_bytes(bytes_)} was allocated here"


def made_of_it(bytes_: int) -> str:
    """What a line does that made most of what an object keeps."""
    return f"{format_bytes(bytes_)} of it was allocated here"


def graph_note(bytes_: int) -> str:
    """What a line does that made a graph which no backward will go through."""
    return f"its graph is made here: {format_bytes(bytes_)}"


def asked_note(oom: Oom) -> str:
    """What the line does that asked for too much."""
    phase = PHASE_PHRASES.get(oom.verdict.asked.phase, "") if oom.verdict.asked else ""
    return f"asked for {format_bytes(oom.requested)} {phase}".rstrip()


_LEAST_OF_SEVERAL = ("shard_optimizer_state",)
"""Advice that names several ways; what it saves is of the one that saves least."""
_MOST_OF_SEVERAL = ("bound_what_is_kept.holder", "bound_what_is_kept")
"""The same, where it depends on how much of it is left."""
ENOUGH_SO_FAR = "enough for this request, later ones unknown"
SO_FAR_EXPLAINED = "What comes after this request is not known."
"""What stands once below pieces of advice that are enough so far."""


def effect_text(advice: Advice, oom: Oom) -> str:
    """What a remedy gives: ``saves 9.77 GiB · enough alone``; empty where neither is known."""
    at_least = "at least " if advice.slug in _LEAST_OF_SEVERAL else "up to " if advice.slug in _MOST_OF_SEVERAL else ""
    saves = f"saves {at_least}{format_bytes(advice.saves_bytes)}" if advice.saves_bytes else ""
    if advice.slug == "raise_cap":
        return _effect_of_cap(advice, oom)
    if advice.enough:
        enough = _enough(advice, oom)
    elif advice.enough is False:
        short = missing(advice, oom)
        enough = f"not enough alone: still {format_bytes(short)} short" if short else "not enough alone"
    else:
        spare = advice.values.get("spare")
        enough = "not certain to be enough alone" if saves else f"only {format_bytes(spare)} to spare" if spare else ""
    return " · ".join(filter(None, (saves, enough)))


def _effect_of_cap(advice: Advice, oom: Oom) -> str:
    """What a higher cap takes of the card, and how far it carries: where something is left over, no more than that."""
    takes = f"takes {format_bytes(advice.values['least'] - advice.values['low'])} more"
    if only_delays(advice, oom):
        far = f"only delays it, by {plural(advice.values['passes'], 'pass', 'passes')}"
    elif oom.verdict.cause == "retained":
        far = ENOUGH_SO_FAR
    elif "causes.private_pools.each_pass" in {note.code for note in oom.verdict.headline}:
        far = "enough for this pass"  # the next one makes another pool
    else:
        far = _enough(advice, oom)
    return f"{takes} · {far}"


def only_delays(advice: Advice, oom: Oom) -> bool:
    """Whether what grows fills what the remedy gives as well, after some passes."""
    return advice.slug == "raise_cap" and oom.verdict.cause == "growth" and bool(advice.values["passes"])


def _enough(advice: Advice, oom: Oom) -> str:
    told = {note.code for note in oom.verdict.headline}
    rest_is_told = advice.slug == "raise_cap" and any(note.values.get("function") for note in oom.verdict.headline)
    if advice.values.get("whole_pass") or rest_is_told:
        return "probably enough for this pass"
    if advice.slug == "bound_batch":
        return "enough alone"  # such passes had fitted, from beginning to end
    if advice.slug == "raise_cap" and advice.values.get("rise"):
        return f"room for about {plural(advice.values['passes'], 'more pass', 'more passes')}"
    following = next((note.values["next"] for note in oom.verdict.headline if note.values.get("next")), None)
    if following is not None and _serves_the_next_step(advice, oom, following):
        return "enough alone"
    if not _knows_the_rest(oom):
        return ENOUGH_SO_FAR
    return "enough for this pass" if "causes.capacity.rising" in told else "enough alone"  # the next may need more


def _serves_the_next_step(advice: Advice, oom: Oom, needs: int) -> bool:
    """Whether it is enough for the next step as well, which `needs` so much at its peak; a higher cap counts it."""
    return advice.slug == "raise_cap" or 0 < needs - (advice.saves_bytes or 0) <= oom.limit.low


def _knows_the_rest(oom: Oom) -> bool:
    """Whether it is known what the program would have asked for next: no more than passes that fitted had needed."""
    known, told = oom.verdict.failing_pass, {note.code for note in oom.verdict.headline}
    if not told.isdisjoint(("causes.capacity.history", "causes.pass.keeps")):
        return False
    return oom.verdict.cause == "growth" or (known is not None and known.has_fitted)


def missing(advice: Advice, oom: Oom) -> int | None:
    """By how many bytes the request would still fail after `advice`, with all usable free bytes in one piece."""
    if advice.saves_bytes is None:
        return None
    spare = advice.saves_bytes + oom.free.usable + oom.limit.low - oom.totals.reserved - oom.alloc_size
    return -spare if spare < 0 else None


def else_text(advice: tuple[Advice, ...], told: int = 1) -> str:
    """What advice there is beside what was told: ``2 other fixes, and 3 ruled out``, or ``3 fixes ruled out``."""
    more = sum(not item.refuted for item in advice) - told
    refuted = sum(item.refuted for item in advice)
    if more <= 0:
        return f"{plural(refuted, 'fix', 'fixes')} ruled out" if refuted else ""
    others = plural(more, "other fix", "other fixes")
    return f"{others}, and {refuted} ruled out" if refuted else others


def other_of_kind(slug: str) -> str:
    """What is called of a kind that a holder named beside it has as well: ``other activations``."""
    name = label(slug, PART_LABELS)
    return name if slug == "duplicate_model" else f"other {name}"


def part_of_line(slug: str, where: Location | None, shorten: Callable[[str], str]) -> str:
    """What one line made of a kind of memory: ``activations: mlp (workloads.py:29)``; None: all other lines."""
    name = label(slug, PART_LABELS)
    if where is None:
        return f"{name}, other lines"
    name = "allocated in" if slug == "unknown" else f"{name}:"
    file = shorten(where.file).replace("\\", "/").rpartition("/")[2]
    return f"{name} {said_place(clean(where.function, 40), f'{clean(file, 60)}:{where.line}')}"


def unsure(device: DeviceFindings) -> str:
    """How sure the cause is, where it is not certain: a word beside the headline."""
    if device.oom is None or device.oom.verdict.confidence == "high":
        return ""
    return label(device.oom.verdict.confidence, CONFIDENCE_LABELS)


def sureness(findings: Findings) -> tuple[str, ...]:
    """The line below the first screen, in parts: the cause, how sure it is, and how well the run was recorded."""
    device = findings.main
    if device is None:
        return ()
    parts = []
    if device.oom is not None:
        verdict = device.oom.verdict
        parts = [f"cause: {cause_label(verdict)}, {said_confidence(verdict)}"]
    if cut.is_cut(findings):
        parts.append("the file was cut off")
    parts.append(_recorded(findings))
    if not device.exact:
        parts.append("figures before the end are estimates")
    elif device.reconciliation.unaccounted_bytes:
        parts.append(f"{format_bytes(abs(device.reconciliation.unaccounted_bytes))} unaccounted for")
    return tuple(parts)


def _recorded(findings: Findings) -> str:
    """How much of the run was recorded; that nothing is missing is said only where nothing says otherwise."""
    if (part := brief_part(findings)) is not None:
        return part
    recording = findings.recording
    doubts = any(note.code in _DOUBTS for note in recording.notes)
    if recording.history == "full" and doubts:
        return "recorded from the start"
    return RECORDED.get(recording.history, recording.history)


def bill_note(device: DeviceFindings) -> str:
    """What the bill of the model counts that the model does not need; empty where nothing is known to be left over."""
    if device.oom is None or device.oom.verdict.cause not in ("growth", "retained"):
        return ""
    return "The last column also counts what the verdict says is left over."


def limit_note(limit: int | None, beyond: int | None, *, capped: bool) -> str:
    """The limit at the end of a bar: ``limit 11.2 GiB (cap; the card has 128 GiB free)``, or what is free."""
    free = f"the card has {format_bytes(beyond)} free" if beyond else ""
    if limit is None:
        return free
    within = "; ".join(filter(None, ("a cap" if capped else "", free)))
    return f"limit {format_bytes(limit)}" + (f" ({within})" if within else "")
