"""What a plan says: notes on its answers, the headings of its tables, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping

from oomscope.analysis.plan.records import CardFit, Estimate, Largest
from oomscope.units import format_bytes, plural
from oomscope.wording.clean import clean
from oomscope.wording.labels import CATEGORY_LABELS, PHASE_LABELS, label
from oomscope.wording.template import Sentence

UNKNOWN = "–"

PLAN: dict[str, Sentence] = {
    "plan.one_recording": (
        "Only one shape was recorded: how each size grows is taken from what the tensor is. A second recording at "
        "another shape would prove it"
    ),
    "plan.not_varied": (
        "{parameter} is {value} in every recording: how memory depends on it is inferred, and the range is wider. One "
        "more recording at another {parameter} would settle it"
    ),
    "plan.not_told": (
        "{parameter} is {value} in every recording, and nothing in them tells how memory depends on it: no other value "
        "is predicted. One more recording at another {parameter} would do"
    ),
    "plan.ends_early": (
        "Every recording ends with a request that failed: the program would have gone on, so peaks are lower bounds, "
        "and nothing is said to fit. Record one run at a smaller value that comes to its end (oomscope run --on exit) "
        "and give it as well: then this is a prediction"
    ),
    "plan.failed_too_early": (
        "{file} failed long before the peak of the others, so it does not tell how that one grows: left out"
    ),
    "plan.late": "A recording begins after the first allocation: what it found in place is laid out anew",
    "plan.rests_on": "replayed from {file}",
    "plan.too_far": (
        "nothing is said to fit for certain from one and a half times a recorded length or side on, where no recording "
        "varies it: one more recording at another value would settle it"
    ),
    "plan.workspaces": (
        "kernels choose their workspaces anew at every shape: the range spans replays with workspaces as recorded, "
        "half as large, and next to none"
    ),
    "plan.unmatched": (
        "{count:n allocation} of up to {bytes:bytes} in {site:place}, {phase}, only {file} has; none of the other "
        "recordings tells how they grow"
    ),
    "plan.shape_from_tensors": (
        "the batch of {batch} in {file} is inferred from {tensors:n tensor}; tell it with --at to be sure"
    ),
}

TITLE = "Peak memory at other shapes"
AT_LEAST = "At least so much memory at other shapes: every recording ends with a request that failed"
LARGEST_TITLE = "What fits"
LARGEST_HEADINGS = ("card or cap", "largest", "at", "to spare", "retries", "what sets the limit")
EXPLAINED = (
    "Allocated: what tensors take; reserved: what PyTorch takes from the card for them "
    "where no cap makes it give unused segments back. In brackets: the range in "
    "which the true figure is expected. A shape fits a card only if the replay on that card survives at the upper end "
    "of the range and leaves room for the CUDA context; '?' where that is not certain. Retries: how often all cached "
    "blocks are released to serve one request, which costs time."
)


def shape_text(shape: Mapping[str, int]) -> str:
    """``batch=8, seq=512``."""
    return clean(", ".join(f"{name}={value}" for name, value in shape.items()), 200)


def estimate_text(estimate: Estimate) -> str:
    """``9.34 GiB (9.32 to 9.36)``, where the units are one; without a range where it reads as one figure."""
    middle, low, high = map(format_bytes, (estimate.bytes, estimate.low, estimate.high))
    if low == high:
        return middle
    number, _, unit = low.partition(" ")
    if middle.endswith(f" {unit}") and high.endswith(f" {unit}"):
        return f"{middle} ({number} to {high.removesuffix(f' {unit}')})"
    return f"{middle} ({low} to {high})"


def least_text(estimate: Estimate) -> str:
    """``≥ 9.32 GiB``, where a recording ended before its peak."""
    return f"≥ {format_bytes(estimate.low)}"


def fit_text(card: CardFit) -> str:
    """``fits, 4.2 GiB free``, ``does not fit, 1.3 GiB short``, or that it is not certain."""
    if card.fits is None:
        return "?"
    if not card.fits:
        return f"no, {format_bytes(-card.headroom)} short" if card.headroom < 0 else "no"
    room = f"yes, {format_bytes(card.headroom)} free" if card.headroom >= 0 else "yes, tightly"
    return f"{room}, {card.retries} retries" if card.retries else room


def largest_text(found: Largest) -> str:
    """``batch=24``, ``batch=4096 or more``, ``batch=32, but not surely 25``, or ``no batch``."""
    if found.value is None:
        return clean(f"no {found.parameter}", 80)
    more = " or more" if found.bound else ""
    if found.uncertain_from is not None:
        more = f", but not surely {found.uncertain_from}"
    return clean(f"{found.parameter}={found.value}{more}", 80)


def limit_text(found: Largest) -> str:
    """What takes most at the peak that does not fit: ``forward: activations 9.1 GiB, parameters 3.0 GiB``."""
    return f"{label(found.phase, PHASE_LABELS)}: {_at_peak(found)}"


def _at_peak(found: Largest) -> str:
    parts = [f"{label(name, CATEGORY_LABELS)} {format_bytes(count)}" for name, count in list(found.at_peak.items())[:3]]
    return ", ".join(parts)


def largest_sentences(found: Largest) -> str:
    """``A100-40, at seq=512: batch=40 is the largest that fits, …``, and what keeps the next one from it."""
    setting = f", {clean(found.setting, 120)}" if found.setting else ""
    others = f", at {shape_text(found.others)}" if found.others else ""
    value = clean(f"{found.parameter}={found.value}", 80)
    if found.value is None:
        fits = clean(f"no {found.parameter} fits", 80)
    elif found.bound:
        fits = f"{value} fits, and larger ones may"
    else:
        fits = f"{value} is the largest that fits"
    room = "" if found.headroom is None else f", with {format_bytes(found.headroom)} to spare"
    retries = f" and {plural(found.retries, 'retry', 'retries')}" if room and found.retries else ""
    doubt = "" if found.uncertain_from is None else f"; {found.uncertain_from} may not fit"
    limit = "" if found.bound else f" What sets the limit ({label(found.phase, PHASE_LABELS)}): {_at_peak(found)}."
    return f"{clean(found.gpu)}{setting}{others}: {fits}{room}{retries}{doubt}.{limit}"
