"""The tables of a plan, the same in every plain format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oomscope.analysis.plan.records import Largest, Plan, Prediction
from oomscope.rendering.common.tables import Table
from oomscope.units import format_bytes, format_count
from oomscope.wording import say
from oomscope.wording.clean import clean
from oomscope.wording.plan import (
    AT_LEAST,
    LARGEST_HEADINGS,
    LARGEST_TITLE,
    TITLE,
    UNKNOWN,
    estimate_text,
    fit_text,
    largest_text,
    least_text,
    limit_text,
    shape_text,
)


def predictions(plan: Plan) -> Table:
    """One row for each shape and setting."""
    cards = [card.gpu for card in plan.predictions[0].cards] if plan.predictions else []
    settings = any(row.setting for row in plan.predictions)
    headings = ("shape", *(["setting"] if settings else []), "allocated", "reserved", *(clean(card) for card in cards))
    same = _of_all([row.shape for row in plan.predictions]) if plan.predictions else {}
    rows = tuple(_row(row, same, settings=settings, cut=plan.at_least) for row in plan.predictions)
    first = 2 if settings else 1
    title = (AT_LEAST if plan.at_least else TITLE) + (f" ({shape_text(same)})" if same else "")
    return Table(title, headings, rows, frozenset(range(first, len(headings))))


def _of_all(shapes: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """What all of several shapes have in common: said once, above them; nothing where they are all the same."""
    same = {name: value for name, value in shapes[0].items() if all(shape.get(name) == value for shape in shapes)}
    return same if len(shapes) > 1 and all(shape.keys() > same.keys() for shape in shapes) else {}


def _row(row: Prediction, same: Mapping[str, int], *, settings: bool, cut: bool) -> tuple[str, ...]:
    setting = (clean(row.setting or "recorded", 120),) if settings else ()
    # What PyTorch would have reserved hangs on the limit, at which it would have let go of some.
    peaks = (
        (least_text(row.peak_allocated), UNKNOWN)
        if cut
        else (estimate_text(row.peak_allocated), estimate_text(row.peak_reserved))
    )
    own = {name: value for name, value in row.shape.items() if name not in same}
    return (shape_text(own), *setting, *peaks, *map(fit_text, row.cards))


def largest(plan: Plan) -> Table:
    """One row for each card, setting and parameter."""
    return Table(LARGEST_TITLE, LARGEST_HEADINGS, tuple(map(_largest, plan.largest)), frozenset({3, 4, 5}))


def _largest(found: Largest) -> tuple[str, ...]:
    setting = f", {clean(found.setting, 120)}" if found.setting else ""
    headroom = UNKNOWN if found.headroom is None else format_bytes(found.headroom)
    return (
        f"{clean(found.gpu)}{setting}",
        largest_text(found),
        shape_text(found.others) or UNKNOWN,
        headroom,
        UNKNOWN if found.retries is None else format_count(found.retries),
        limit_text(found),
    )


def rests_on(plan: Plan) -> str:
    """What the answers rest on: the files with their shapes."""
    parts = [f"{clean(one.name, 200)} ({'; '.join(map(shape_text, one.shapes))})" for one in plan.sources]
    return f"From {', '.join(parts)}."


def alignment(plan: Plan) -> str:
    """How the recordings fit together, in one sentence."""
    known = plan.alignment
    if len({tuple(shape.items()) for one in plan.sources for shape in one.shapes}) == 1:
        return ""
    total = known.matched + known.unmatched
    if not known.unmatched:
        return f"All {total:,} allocations were matched between the recordings."
    return (
        f"{known.matched:,} of {total:,} allocations were matched between the recordings; the others hold "
        f"{format_bytes(known.unmatched_bytes)} of the recorded peak."
    )


def remarks(plan: Plan) -> list[str]:
    """All notes, each once: on the whole, on the alignment, and on single shapes."""
    notes = [*plan.notes, *plan.alignment.notes]
    notes += [one for row in plan.predictions for one in row.notes if one.code != "plan.rests_on"]
    return [_sentence(text) for text in dict.fromkeys(clean(say(one), 400) for one in notes)]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
