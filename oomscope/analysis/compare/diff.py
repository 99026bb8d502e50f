"""Two recordings, compared at the peak, at the OOM or at the end."""

from __future__ import annotations

from collections.abc import Mapping

from oomscope.analysis.analyze import analyze
from oomscope.analysis.compare.code_places import find_places
from oomscope.analysis.compare.live_sites import live_sites
from oomscope.analysis.compare.matching import match_places
from oomscope.analysis.compare.records import Diff, Side
from oomscope.analysis.compare.sites import change_sites
from oomscope.analysis.compare.stacks import change_stacks
from oomscope.analysis.compare.surroundings import (
    change_fragmentation,
    change_growth,
    change_holders,
    change_names,
    change_peak,
    change_settings,
    change_versions,
)
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.progress import Listener, silent
from oomscope.analysis.records import CATEGORIES, PHASES
from oomscope.errors import RequestError
from oomscope.model import Action, Snapshot

AT_NAMES = ("auto", "peak", "oom", "end")


def compare(
    before: Snapshot,
    after: Snapshot,
    *,
    at: str = "auto",
    device: int | None = None,
    files: tuple[str, str] = ("before", "after"),
    progress: Listener = silent,
) -> Diff:
    """What differs from `before` to `after`.

    Args:
        before: one recording.
        after: the other.
        at: ``peak``, ``oom``, ``end``, or ``auto``: the OOM where both have one, else the peak where both have a
            timeline, else the end.
        device: CUDA index of the device that is compared in both; None: the one that each is about.
        files: what the reader calls them.
        progress: told now and then what is done.

    Raises:
        RequestError: one of them has no such instant or device.
    """
    kind = _choose(before, after) if at == "auto" else at
    ours = _findings(before, kind, device, files[0], progress)
    theirs = _findings(after, kind, device, files[1], progress)
    ours, theirs = _same_device(ours, theirs, kind)
    return _diff(ours, theirs, kind, files)


def _choose(before: Snapshot, after: Snapshot) -> str:
    both = (before, after)
    if all(any(len(device.trace.entries(Action.OOM)) for device in one.devices) for one in both):
        return "oom"
    return "peak" if all(any(len(device.trace) > 1 for device in one.devices) for one in both) else "end"


def _findings(snapshot: Snapshot, at: str, device: int | None, name: str, progress: Listener) -> Findings:
    try:
        found = analyze(snapshot, at=at, device=device, whatif=False, progress=progress)
    except RequestError as error:
        raise RequestError(f"{name}: {error}") from error
    if found.main is None:
        raise RequestError(f"{name}: the snapshot holds no device, so there is nothing to compare")
    return found


def _same_device(before: Findings, after: Findings, at: str) -> tuple[Findings, Findings]:
    """Where each is about another device although both have both, the same one of both: the one that holds more."""
    ours, theirs = before.at.device, after.at.device
    indices = [{device.device for device in found.devices} for found in (before, after)]
    common = [index for index in (ours, theirs) if index in indices[0] & indices[1]]
    if ours == theirs or not common:
        return before, after

    def least(index: int) -> tuple[int, int]:
        return min(found.device(index).at.allocated for found in (before, after)), -index

    index = max(sorted(set(common)), key=least)
    if not least(index)[0]:
        return before, after
    again = [analyze(found.snapshot, at=at, device=index, whatif=False) for found in (before, after)]
    return again[0], again[1]


def _diff(before: Findings, after: Findings, at: str, files: tuple[str, str]) -> Diff:
    ours, theirs = before.main, after.main
    assert ours is not None
    assert theirs is not None
    matches = match_places(find_places(before.snapshot), find_places(after.snapshot))
    here, there = live_sites(ours), live_sites(theirs)
    missing = [
        device.at.allocated - sum(site.bytes for site in sites.values())
        for device, sites in ((ours, here), (theirs, there))
    ]
    sites, scaling = change_sites(here, there, matches, missing[1] - missing[0])
    return Diff(
        at=at,
        before=_side(before, ours, files[0], missing[0]),
        after=_side(after, theirs, files[1], missing[1]),
        sites=sites,
        categories=_less(theirs.categories, ours.categories, CATEGORIES),
        phases=_less(theirs.phases, ours.phases, PHASES),
        stacks=change_stacks(ours, theirs, matches, missing[1] - missing[0]),
        fragmentation=change_fragmentation(ours, theirs),
        peak=change_peak(ours, theirs),
        scaling=scaling,
        names=change_names(ours, theirs),
        holders=change_holders(ours, theirs),
        growth=change_growth(ours, theirs, matches),
        settings=change_settings(before.snapshot, after.snapshot),
        versions=change_versions(before.snapshot, after.snapshot),
    )


def _side(findings: Findings, device: DeviceFindings, file: str, unaccounted: int) -> Side:
    return Side(
        file=file,
        device=device.device,
        kind=findings.at.kind,
        entry=device.at_entry,
        totals=device.at,
        passes=device.steps.count if device.history.moves else None,
        history=findings.recording.history,
        unaccounted=unaccounted,
    )


def _less(after: Mapping[str, int], before: Mapping[str, int], names: tuple[str, ...]) -> dict[str, int]:
    return {name: after.get(name, 0) - before.get(name, 0) for name in names}
