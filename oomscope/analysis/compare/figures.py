"""The figures of one recording that a budget can be about, and that a baseline keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

import numpy as np

from oomscope.analysis.analyze import analyze
from oomscope.analysis.compare.code_places import NOTHING_AROUND, CodePlaces, Surroundings, find_places
from oomscope.analysis.compare.live_sites import live_sites
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.passes.growth import find_growth
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.progress import Listener, silent
from oomscope.analysis.records import Location
from oomscope.frozen import frozen
from oomscope.model import Snapshot

MOST_SITES = 100
SMALL = 1000
"""One in so many bytes of the peak; smaller sites are not kept in a baseline."""
_MIDWAY = frozenset({"wrapped", "late"})
_OVERWRITTEN = frozenset({"wrapped"})


@frozen
class SiteFigure:
    """The bytes of one site at the peak."""

    site: Location | None
    caller: Location | None
    label: str | None
    bytes: int
    category: str = "unknown"


@frozen
class Figures:
    """What is measured. None is unknown.

    Attributes:
        peak_allocated, peak_reserved: the most in the recorded window; None without a timeline.
        fragmentation: stranded bytes when the most was allocated.
        growth_per_pass: bytes that a pass of the loop leaves behind; None where no pass is known.
        categories, sites: at the peak of allocated bytes; sites largest first.
        growing: who leaves bytes behind, with those of one pass.
        pins: whose blocks keep free bytes from being released, with those bytes.
        around: what stands beside the lines, by which they are recognised when they move.
        complete: whether the recording goes back to the beginning, so that no higher peak can have been missed.
    """

    peak_allocated: int | None
    peak_reserved: int | None
    fragmentation: int | None
    growth_per_pass: int | None
    categories: Mapping[str, int]
    sites: tuple[SiteFigure, ...]
    growing: tuple[SiteFigure, ...] = ()
    pins: tuple[SiteFigure, ...] = ()
    around: Mapping[Location, Surroundings] = field(default_factory=dict)
    complete: bool = True

    @property
    def places(self) -> CodePlaces:
        """The lines of the sites, with what stands around them."""
        return CodePlaces(self.around)


def measure(
    snapshot: Snapshot, *, device: int | None = None, since_us: int | None = None, progress: Listener = silent
) -> Figures:
    """The figures of a recording.

    Args:
        snapshot: the recording.
        device: CUDA index; None: the device on which the most was allocated at once.
        since_us: a time; what was allocated before it is left out, and peaks are those beyond it. None: all counts.
        progress: told now and then what is done.

    Raises:
        RequestError: the snapshot has no such device.
    """
    found = analyze(snapshot, at="peak", device=device, whatif=False, progress=progress)
    if since_us is None or found.main is None or not found.main.history.trace.timed:
        return figures(found)
    windows = {one.device: _window(one, since_us) for one in found.devices if device in (None, one.device)}
    index = max(windows, key=lambda one: windows[one].allocated)
    window = windows[index]
    at = analyze(snapshot, at=window.entry, device=index, whatif=False, progress=progress)
    return figures(at, window)


@frozen
class _Window:
    """What happened on a device since an entry: the most beyond what there was, and the entry of it."""

    since: int
    entry: int
    allocated: int
    reserved: int


def _window(device: DeviceFindings, since_us: int) -> _Window:
    history = device.history
    since = int(np.searchsorted(history.trace.time_us, since_us, side="left"))
    # Row n of a curve is the value before entry n.
    allocated, reserved = history.curves.allocated[since:], history.curves.reserved[since:]
    at = int(allocated.argmax())
    return _Window(
        since, since + at - 1, int(allocated[at] - allocated[0]), int(reserved.max() - reserved[0])
    )  # fmt: skip


def figures(findings: Findings, window: _Window | None = None) -> Figures:
    """The figures of the device that `findings`, made at the peak, begin with; of a window, beyond its beginning."""
    device = findings.main
    if device is None:
        return Figures(None, None, None, None, {}, ())
    peak = device.peak
    since = None if window is None else window.since
    sites = _sites(device, since)
    growth = find_growth(device.study, device.history.entries - 1) if device.history.moves else ()
    allocated, reserved = (None, None) if peak is None else (peak.allocated, peak.reserved)
    return Figures(
        peak_allocated=allocated if window is None else window.allocated,
        peak_reserved=reserved if window is None else window.reserved,
        fragmentation=None if peak is None else device.fragmentation.stranded,
        growth_per_pass=_per_pass(device, growth),
        categories={name: count for name, count in device.categories.items() if count}
        if window is None
        else _by_category(sites),
        sites=sites,
        growing=_largest(SiteFigure(one.site, one.caller, one.label, one.bytes_per_step) for one in growth),
        pins=_largest(SiteFigure(one.site, one.caller, one.label, one.stranded_bytes) for one in device.pins),
        around=find_places(findings.snapshot).around,
        complete=findings.recording.history not in (_MIDWAY if window is None else _OVERWRITTEN),
    )


def _sites(device: DeviceFindings, since: int | None) -> tuple[SiteFigure, ...]:
    found = live_sites(device, since)
    return _largest(SiteFigure(*key, one.bytes, one.category) for key, one in found.items() if one.bytes)


def _by_category(sites: tuple[SiteFigure, ...]) -> dict[str, int]:
    """The bytes of sites by what most of each is."""
    found: dict[str, int] = {}
    for one in sites:
        found[one.category] = found.get(one.category, 0) + one.bytes
    return found


def _largest(found: Iterable[SiteFigure]) -> tuple[SiteFigure, ...]:
    return tuple(sorted(found, key=lambda one: (-one.bytes, str(one.site), str(one.caller), one.label or "")))


def _per_pass(device: DeviceFindings, growth: tuple[Growth, ...]) -> int | None:
    """What all growing sites leave behind in one pass; None where no pass is known, so that there may be growth."""
    if not device.history.moves or (not growth and device.steps.count < 2):
        return None
    return sum(one.bytes_per_step for one in growth if one.kind != "time")


def kept(found: Figures) -> Figures:
    """`found` with no more than a baseline needs: sites that matter, and what stands around their lines."""
    least = (found.peak_allocated or 0) // SMALL
    sites = tuple(one for one in found.sites if one.bytes > least)[:MOST_SITES]
    lines = dict.fromkeys(where for one in sites for where in (one.site, one.caller) if where)
    around = {where: found.around.get(where, NOTHING_AROUND) for where in lines}
    return Figures(
        found.peak_allocated, found.peak_reserved, found.fragmentation, found.growth_per_pass, found.categories,
        sites, around=around, complete=found.complete,
    )  # fmt: skip
