"""Who else is on the card, as a recording by oomscope knows them."""

from __future__ import annotations

from oomscope.analysis.study import DeviceStudy


def other_processes(study: DeviceStudy) -> tuple[tuple[str, int], ...]:
    """Other processes on the card, largest first, as (name, bytes)."""
    others = study.snapshot.recorded.device(study.index).other_processes()
    named = [(one.name or f"process {'?' if one.pid is None else one.pid}", one.bytes or 0) for one in others]
    return tuple(sorted(named, key=lambda other: -other[1]))
