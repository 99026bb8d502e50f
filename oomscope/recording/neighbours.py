"""Which of the processes on a device is this one: in a container their numbers alone do not say.

NVML numbers processes as the host does, or, with newer drivers, as the caller's own PID namespace does. So outside the
first namespace a number that differs proves nothing, and the bytes decide: this process uses at least what its
allocator has reserved, and little beside it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_MOST_BESIDE = 3 << 30
"""What a CUDA context, loaded kernels, library workspaces and NCCL's buffers take at most beside the allocator."""
_FIRST_NAMESPACE = "pid:[4026531836]"
"""PROC_PID_INIT_INO, the same in every Linux kernel."""


def own_numbers(status: str) -> frozenset[int]:
    """This process's number in each PID namespace that /proc, whose ``self/status`` is given, can see."""
    named = [line.partition(":")[2].split() for line in status.splitlines() if line.startswith("NSpid:")]
    return frozenset(int(word) for words in named for word in words if word.isdigit()) | {os.getpid()}


def sees_host_numbers() -> bool:
    """Whether this process runs in the machine's first PID namespace, so that it knows everyone by NVML's numbers."""
    try:
        return str(Path("/proc/self/ns/pid").readlink()) == _FIRST_NAMESPACE
    except OSError:
        # No Linux: no namespaces either. On Linux, a sandbox that shows no links may hide anything.
        return os.name != "posix"


def mark_own(
    rows: list[dict[str, Any]], reserved: int | None, numbers: frozenset[int], *, knows_numbers: bool
) -> list[dict[str, Any]]:
    """`rows` (``pid``, ``bytes``) with ``this``: True, False, or None where that cannot be told.

    Args:
        rows: the processes on one device, as NVML lists them.
        reserved: bytes that this process's allocator has reserved there; None where that is unknown.
        numbers: this process's numbers.
        knows_numbers: whether NVML's numbers are the ones that this process knows itself by.
    """
    possible = [position for position, row in enumerate(rows) if _can_be_own(row["bytes"], reserved)]
    named = [position for position in possible if rows[position]["pid"] in numbers]
    likely = [position for position in possible if _is_likely_own(rows[position]["bytes"], reserved)]
    if named or knows_numbers:
        return [{**row, "this": position in named} for position, row in enumerate(rows)]
    if len(likely) == 1:
        return [{**row, "this": position in likely} for position, row in enumerate(rows)]
    return [{**row, "this": None if position in possible else False} for position, row in enumerate(rows)]


def _can_be_own(used: int | None, reserved: int | None) -> bool:
    return used is None or reserved is None or used >= reserved


def _is_likely_own(used: int | None, reserved: int | None) -> bool:
    return used is not None and reserved is not None and reserved <= used <= reserved + _MOST_BESIDE
