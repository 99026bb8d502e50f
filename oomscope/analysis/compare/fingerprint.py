"""The fingerprint of a failure: the same for the same mistake in other runs, on other machines, at other sizes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from oomscope.analysis.attribution.names_and_holders import suspect
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import Location
from oomscope.model import package_path
from oomscope.model.frames import FrameKind, frame_kind, slashes

MOST_FUNCTIONS = 3
"""Of the program's own, from the line outwards: ``forward`` alone is everybody's."""
_FILE = re.compile(r"\A[^:]*\.py: ")
"""What a global variable is called by: its module's file."""
_NUMBERS = re.compile(r"\d+")


def fingerprint(device: DeviceFindings | None) -> str:
    """A hash of the cause and of whose memory it is: holders and functions, without files, lines, folders and sizes.

    It is about the failure on `device`; all snapshots without one have the same.

    Where memory is used up little by little, the request that fails is luck; so the line that asked counts only where
    its request was too large by itself.
    """
    told = [] if device is None or device.oom is None else [device.oom.verdict.cause, *_whose(device)]
    return hashlib.sha256("\0".join(told).encode("utf-8", "backslashreplace")).hexdigest()[:12]


def _whose(device: DeviceFindings) -> list[str]:
    """What tells the mistake from others of the same cause."""
    assert device.oom is not None
    verdict = device.oom.verdict
    if verdict.cause == "oversized_request":
        return functions(device.oom.stack)
    if verdict.cause in ("growth", "retained") and (holder := suspect(device.holders)) is not None:
        return [_NUMBERS.sub("#", _FILE.sub("", holder))]
    slug = verdict.drivers[0].slug if verdict.drivers else ""
    if verdict.cause == "growth" and device.growth:
        return [slug, *_code(device, device.growth[0].site)]
    if verdict.cause == "outside_allocator":
        return []  # nothing of this program's
    if verdict.cause in ("fragmentation", "private_pools") and device.pins:
        return _code(device, device.pins[0].site)
    return [slug, *_code(device, verdict.drivers[0].site)] if verdict.drivers else []


def _code(device: DeviceFindings, where: Location | None) -> list[str]:
    """A line by the functions around it; one of a library by its place in the package as well."""
    if where is None:
        return []
    package = package_path(where.file)
    stack = next((row.stack for row in device.sites if row.site == where), ())
    return [package or "", where.function, *functions(stack)]


def functions(stack: Sequence[str]) -> list[str]:
    """The innermost of the program's own functions on a stack of ``file:line function``; what calls itself counts once.

    Not their files: the same program lies under other names elsewhere. A module has no function, and no other name.
    """
    found: list[str] = []
    for row in stack:
        place, _, function = row.rpartition(" ")
        file = slashes(place.rpartition(":")[0])
        if frame_kind(file) == FrameKind.OWN and function != "<module>" and function not in found[-1:]:
            found.append(function)
    return found[:MOST_FUNCTIONS]
