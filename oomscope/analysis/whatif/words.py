"""How memory is written beside replays: two decimals, for a gigabyte more or less decides."""

from __future__ import annotations

from oomscope.units import GIB, format_bytes


def memory(count: int) -> str:
    """``15.28 GiB``, ``-1.71 GiB``; below 1 GiB as everywhere else."""
    return f"{count / GIB:.2f} GiB" if abs(count) >= GIB else format_bytes(count)
