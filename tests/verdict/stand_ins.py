"""Circumstances of a failed request that are made up: only what the rule under test reads, the rest harmless."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from oomscope.analysis.labels.records import Driver
from oomscope.analysis.memory.records import FreeForRequest, Pin, Totals
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.records import Location
from oomscope.analysis.verdict.piled import LoopFacts, Piled
from oomscope.analysis.verdict.records import Asked, ProcessLimit, Qualifying, Suspect
from oomscope.analysis.verdict.shortage import Shortage, Tested

MIB = 1 << 20
GIB = 1 << 30
PLACE = Location("train.py", 31, "train")
NO_LAYOUT = SimpleNamespace(segments=SimpleNamespace(pool=np.zeros(0, np.int64)))
OTHER = Location("model.py", 7, "forward")


def free(**parts: int) -> FreeForRequest:
    """Free bytes by what they were worth to the request; nothing where not told."""
    return FreeForRequest(**{name: parts.get(name, 0) for name in FreeForRequest.__slots__})


def circumstances(
    size: int = 2000,
    *,
    low: int = 10_000,
    high: int | None = None,
    source: str = "recorded",
    reserved: int = 10_000,
    allocated: int = 10_000,
    **more: Any,
) -> Any:
    """10,000 bytes are reserved and allocated of 10,000, and 2,000 were asked for; `more` replaces attributes."""
    limit = ProcessLimit(low, low if high is None else high, source)
    holes = more.pop("free", free())
    shortage = {
        name: more.pop(name) for name in ("grown", "retained", "opened", "outside", "total", "cap") if name in more
    }
    request = {
        "size": size, "limit": limit, "free": holes, "totals": Totals(reserved, allocated, allocated), "entry": 0,
        "site": PLACE, "caller": PLACE, "device_free": 0, "recovered": False, "stream": 0, "layout": NO_LAYOUT,
    }  # fmt: skip
    request |= {name: more.pop(name) for name in tuple(more) if name in request}
    case = Shortage(size=size, reserved=reserved, limit=limit, free=holes, **shortage)
    parts = {
        "request": SimpleNamespace(**request), "shortage": case, "piled": Piled(), "growth": (), "suspects": (),
        "rising": None, "drivers": (), "pins": (), "asked": Asked("forward"), "categories": {}, "others": (),
        "failing_pass": None, "in_progress": (), "uncertain_bytes": 0, "names_known": True, "varied_sizes": 0,
        "in_forward": True, "card_unknown": False, "whatif": None, "outside": case.outside, "total": case.total,
        "cap": case.cap, "live": None, "study": None, "sources": (), "may_be_kept": False,
        "may_be_done_with": 0, "left_by_last_pass": 0, "wasted": 0, "keeper_of_last_pass": None,
        "loop": LoopFacts(), "walls": (), "keeps_graphs": False, "parameter_item": None,
        "trains": False, "went_as_far_before": False, "is_in_forward": True, "functions_in_modules": frozenset(),
        "left_by_trace": 0, "other_models": 0, "leaks_for_sure": True, "idle_models": (), "failed_at_once": False,
    }  # fmt: skip
    needs = {
        "share_that_fits": None,
        "state_to_come": (0, 0), "still_to_come": None, "next_step": None, "most": None, "at_work": 0, "made_so_far": 0,
        "rise": 0, "history_of_steps": 0, "as_larger": None, "last_call": None,
        "larger_call": None, "times_the_largest": None, "loading": None,
    }  # fmt: skip
    parts["movable_pins"] = more.get("pins", ())
    needs |= {name: more.pop(name) for name in needs if name in more}
    return SimpleNamespace(**(parts | more), needs=SimpleNamespace(**needs))


def outcome(cause: str, spare: int = 5000, *, bytes_: int = 5000, certain: bool = True) -> Tested:
    """One cause that qualifies."""
    return Tested(cause, certain, (Qualifying(cause, bytes_, spare),))


def suspect(
    holder: str = "kept", kind: str = "collection", *, live: int = 10_000, retained: int = 1000, **more: Any
) -> Suspect:
    """An object that keeps memory alive."""
    return Suspect(**{
        "holder": holder, "kind": kind, "retained": retained, "share": retained / live, "tensors": 3,
        "finished_bytes": retained, "earlier_bytes": retained, "reaches": retained, **more,
    })  # fmt: skip


def growth(**more: Any) -> Growth:
    """A site that leaves 100 bytes behind in each of ten passes."""
    return Growth(**{
        "site": PLACE, "caller": PLACE, "label": None, "bytes_per_step": 100, "generations": 10, "live_bytes": 1000,
        "kind": "generations", "since_entry": 0, "fit": 1.0, "spared_bytes": 900, **more,
    })  # fmt: skip


def pin(**more: Any) -> Pin:
    """A line whose blocks keep 1,000 free bytes from being released."""
    return Pin(**{
        "site": PLACE, "caller": PLACE, "label": None, "live_bytes": 100, "blocks": 2, "stranded_bytes": 1000,
        "alone_bytes": 1000, "together_bytes": 1000, "segments": 2, "smallest": 50, "largest": 50, "oldest_entry": 0,
        **more,
    })  # fmt: skip


def driver(slug: str, bytes_: int) -> Driver:
    """What live bytes are."""
    return Driver(slug, bytes_, PLACE)
