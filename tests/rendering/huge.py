"""A snapshot that fills every table and figure to its cap, with the longest and most awkward texts in each."""

from __future__ import annotations

from functools import cache
from typing import Any

from oomscope.analysis import Findings, analyze
from tests.builders import block, entry, frame, loaded, segment, settings

MIB = 1 << 20
SITES, STEPS, DEVICES, TENSORS = 120, 8, 40, 200
DEPTH = 32
_QUOTES = '"&<' * 70
"""Signs that take five or six bytes each in HTML, in the beginning and the end of a text alike."""
_UNPRINTABLE = "\U000e0001" * 200
"""Signs that are shown escaped, in ten bytes each."""


def awkward(number: int) -> str:
    """A long text that differs from every other at once."""
    return f"{number}{_QUOTES if number % 2 else _UNPRINTABLE}{number}"


def _stack(number: int) -> list[dict[str, Any]]:
    own = frame(awkward(number), number, f"/{number}/{awkward(number)}/{awkward(number + 1)}.py")
    outer = [frame(awkward(number + at), at, f"/{number}/{at}/{awkward(at)}.py") for at in range(DEPTH)]
    return [own, *outer]


def _tensor(number: int, address: int) -> dict[str, Any]:
    return {
        "device": 0,
        "address": address,
        "bytes": MIB,
        "dtype": awkward(number) * 8,
        "shape": [10**15] * 2000,
        "category": "activation",
        "name": awkward(number) * 8,
        "holders": [awkward(number + at) * 8 for at in range(8)],
    }


def _context(base: int) -> dict[str, Any]:
    long = _QUOTES * 8
    return {
        **dict.fromkeys(("torch", "cuda", "driver", "python", "platform", "created", "reason"), long),
        "devices": [{"index": awkward(at), "name": long} for at in range(200)],
        "process": {"host": long, "argv": [long] * 200, "pid": 1},
        "tensors": [_tensor(number, base + number * MIB) for number in range(TENSORS)],
        "holders": [
            {"device": 0, "holder": awkward(number) * 8, "kind": "collection", "bytes": MIB, "retained": MIB}
            for number in range(TENSORS)
        ],
    }


def _trace(base: int, stacks: list[list[dict[str, Any]]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Every site allocates in every step and keeps it, small ones between large holes; then requests fail."""
    trace, segments, at = [], [], base
    for _ in range(STEPS):
        for stack in stacks:
            size = 4 * MIB
            segments.append(segment(at, [block(size, frames=stack), block(28 * MIB, "inactive")], frames=stack))
            trace.append(entry("segment_alloc", at, 32 * MIB, frames=stack))
            trace.append(entry("alloc", at, 32 * MIB, frames=stack))
            trace.append(entry("free_requested", at, 32 * MIB, frames=stack))
            trace.append(entry("free_completed", at, 32 * MIB, frames=stack))
            trace.append(entry("alloc", at, size, frames=stack))
            at += 64 * MIB
    trace += [entry("oom", MIB, 900 * MIB, frames=stack) for stack in stacks[:120]]
    return trace, segments


@cache
def huge_findings() -> Findings:
    """The findings about it."""
    base = 0x7F0000000000
    trace, segments = _trace(base, [_stack(number) for number in range(SITES)])
    for number, item in enumerate(trace):
        item["time_us"] = 1_700_000_000_000_000 + 1000 * number
    for device in range(1, DEVICES):
        segments.append(segment(base, [block(MIB)], device=device))
    length = len(trace) // STEPS
    annotations = [
        {"stage": stage, "name": f"step {awkward(at)}", "device": 0, "time_us": trace[at * length]["time_us"] + late}
        for at in range(STEPS)
        for stage, late in (("START", 0), ("END", 900 * length))
    ]
    made = loaded(
        segments,
        [trace, *([] for _ in range(1, DEVICES))],
        external_annotations=annotations,
        allocator_settings=settings(**{awkward(at): awkward(at + 1) for at in range(200)}),
        oomscope=_context(base),
    )
    return analyze(made, whatif=False)
