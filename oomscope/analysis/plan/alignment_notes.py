"""How the recordings fit together, and where they do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oomscope.analysis.plan.predicting import live_at_peak
from oomscope.analysis.plan.recordings import Recording
from oomscope.analysis.plan.records import Alignment, Source
from oomscope.analysis.plan.scaling import Scaled
from oomscope.analysis.records import PHASES
from oomscope.analysis.whatif.extraction import by_request
from oomscope.model import NO_STACK, IntArray, Note, note

MOST_PLACES = 3
"""That are named where recordings differ."""
WORTH_SAYING = 1 << 20
"""Bytes that a line makes in all without a like: less changes no peak, and is counted in the alignment's figures."""


def source_of(recording: Recording) -> Source:
    """What a recording is for a plan."""
    steps = sum(unit.step >= 0 for unit in recording.units)
    return Source(recording.name, recording.shapes, steps, recording.ends_early)


def alignment_of(each: Sequence[Scaled]) -> Alignment:
    """How the recordings, each scaled from the others, fit together; the figures are those of the first."""
    first = each[0]
    unmatched = ~first.matched
    live, _ = live_at_peak(first.recording.program, first.recording.program.size)
    at_peak = int(first.recording.program.size[live][unmatched[live]].sum())
    notes = [one for scaled in each for one in _places(scaled, WORTH_SAYING)]
    if not first.varied:
        notes.append(note("plan.one_recording"))
    return Alignment(int(np.count_nonzero(~unmatched)), int(np.count_nonzero(unmatched)), at_peak, tuple(notes))


def first_place(scaled: Scaled) -> str:
    """Where most of what has no like is made, for an error: ``, most of it made at model.py:31``."""
    found = _places(scaled)
    location = next((one.values["site"] for one in found if one.values["site"] is not None), None)
    if location is None:
        return ""
    return f", most of it made at {clean_name(location.file)}:{location.line}"


def clean_name(file: str) -> str:
    """The last part of a file's name, printable: errors are shown as they are."""
    name = file.replace("\\", "/").rpartition("/")[2]
    return "".join(sign for sign in name if sign.isprintable())[:80]


def _places(scaled: Scaled, least: int = 0) -> list[Note]:
    """Where requests of a recording have no like, by the line that makes most of their bytes, and at least so many."""
    recording = scaled.recording
    rows = np.flatnonzero(~scaled.matched)
    if not len(rows):
        return []
    study, of_request = recording.study, recording.subject.extraction.row
    stack = by_request(study.history.lifetimes.stack.astype(np.int64), of_request, NO_STACK)[rows]
    phase = by_request(study.phases.astype(np.int64), of_request)[rows]
    size = recording.program.size[rows]
    site = study.sites.sites(stack.astype(np.int32)).astype(np.int64)
    found = []
    for place, part in _largest(site, phase, size)[:MOST_PLACES]:
        mine = (site == place) & (phase == part)
        if size[mine].sum() < least:
            continue
        found.append(
            note(
                "plan.unmatched",
                file=recording.name,
                count=int(mine.sum()),
                bytes=int(size[mine].max()),
                site=study.sites.location(place),
                phase=PHASES[part].replace("_", " "),
            )
        )
    return found


def _largest(site: IntArray, phase: IntArray, size: IntArray) -> list[tuple[int, int]]:
    """Pairs of a site and a phase, those with the most bytes first."""
    pairs, which = np.unique(np.stack([site, phase], axis=1), axis=0, return_inverse=True)
    total = np.bincount(which.reshape(-1), weights=size)
    return [(int(pairs[row][0]), int(pairs[row][1])) for row in np.argsort(-total, kind="stable")]
