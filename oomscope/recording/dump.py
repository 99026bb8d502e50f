"""Making one dump: census, facts, snapshot, file, in the order that leaves most standing when something fails."""

from __future__ import annotations

import contextlib
import gc
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from oomscope.recording import backward, exceptions, extras, inflight, peers, sources, stacks, writing
from oomscope.recording.backend import Backend
from oomscope.recording.facts import Facts
from oomscope.recording.options import Options
from oomscope.recording.saying import say

_CENSUS = "oomscope.recording.census.walk"  # only imported once there is something to record

_LESS_TIME = 4
_FIRST = ("oomscope", "segments", "allocator_settings", "external_annotations", "device_traces")


@dataclass(slots=True)
class Job:
    """What is to be dumped, and why."""

    reason: str
    captured_at: str
    target: Path
    request: dict[str, int] | None = None
    error: BaseException | None = None
    tracked: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Any] = field(default_factory=dict)  # what the session knows: recording, steps, marks, metadata


@dataclass(slots=True)
class Dump:
    """What came of it."""

    path: Path | None
    key: dict[str, Any]  # the dump's own key
    form: str  # "full", "without traces", "context only" or "text"
    seconds: float
    problems: list[str]


@contextlib.contextmanager
def paused_collector() -> Iterator[None]:
    """No garbage collection inside: a snapshot is millions of containers, and none of them is garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_NO_CENSUS: dict[str, Any] = {"tensors": [], "holders": [], "unread": [], "walk": None}


def prepare(options: Options) -> None:
    """Import now what a dump will need, so that no time goes by at the OOM: the census needs numpy, as torch does."""
    if options.walk_budget > 0:
        importlib.import_module(_CENSUS)


def make(job: Job, options: Options, backend: Backend) -> Dump:
    """Dump what `job` asks for; never raises an Exception."""
    start = perf_counter()
    with paused_collector():
        key = _describe(job, options, backend)
        path, form, problems = _write(job, options, backend, key)
    return Dump(path, key, form, perf_counter() - start, problems)


def _describe(job: Job, options: Options, backend: Backend) -> dict[str, Any]:
    facts = Facts(backend)
    start = perf_counter()
    # Stacks before all else: other threads run on meanwhile.
    found = facts.ask("stacks", lambda: stacks.describe(_raised(job, backend), is_programs=not peers.is_watching()))
    took = perf_counter() - start
    # Then the census: the snapshot's own objects would be as many again to walk over.
    census = facts.ask(
        "census", lambda: _census(job, options, backend), {"tensors": [], "holders": [], "unread": [], "walk": None}
    )
    start = perf_counter()
    key = {
        **facts.ask("facts", lambda: facts.collect(job.request), {"schema_version": 1}),
        "stacks": found,
        "reason": job.reason,
        "captured_at": job.captured_at,
        **job.own,
        **census,
        "autograd": facts.ask("autograd", lambda: _backward(job, backend, census["tensors"])),
        "pools": facts.ask("pools", backend.pools, []),
        "pinned_stats": facts.ask("pinned_stats", backend.pinned_stats, {}),
        "exception": _exception(job),
        "seconds": {"stacks": round(took, 4), "facts": round(perf_counter() - start, 4)},
    }
    if facts.failures:
        key["failures"] = facts.failures
    return key


def _raised(job: Job, backend: Backend) -> BaseException | None:
    """The exception whose traceback is the stack of what failed; None where that stack is still there."""
    if job.error is None:
        return None
    return exceptions.oom_behind(job.error, backend) or job.error


def _census(job: Job, options: Options, backend: Backend) -> dict[str, Any]:
    if options.walk_budget <= 0:
        return _NO_CENSUS
    take_census = importlib.import_module(_CENSUS).take_census
    # Autograd's threads for other devices run on meanwhile and release what they have used.
    is_racing = stacks.is_autograds() and len(backend.devices_in_use()) > 1
    if job.reason == "peers" and stacks.is_in_backward():
        is_racing = True  # the thread that dumps is another than the one that runs backward
    census = take_census(
        backend.torch,
        device_type=backend.device_type,
        tracked=job.tracked,
        error=_raised(job, backend),
        seconds=options.walk_budget,
        read_saved=not is_racing,
    )
    if is_racing:
        census.walk["notes"].append("what is saved for backward was not read: autograd runs meanwhile")
    return {"tensors": census.tensors, "holders": census.holders, "unread": census.unread, "walk": census.walk}


def _backward(job: Job, backend: Backend, tensors: list[dict[str, Any]]) -> dict[str, Any] | None:
    return backward.describe(backend, tensors) if job.captured_at == "observer" else None


def _exception(job: Job) -> dict[str, Any] | None:
    if job.error is not None:
        return {"type": type(job.error).__name__, "message": str(job.error)[: writing.MESSAGE_BYTES]}
    if job.reason == "oom":
        return {"type": "OutOfMemoryError", "message": writing.BLANK_MESSAGE}
    return None


def _write(job: Job, options: Options, backend: Backend, key: dict[str, Any]) -> tuple[Path | None, str, list[str]]:
    problems: list[str] = []
    forms = (("full", backend.snapshot), ("without traces", lambda: {"segments": backend.segments()}))
    for form, take in forms:
        try:
            start = perf_counter()
            payload = _restrict({"segments": [], "device_traces": [], **take(), "oomscope": key}, options)
            if options.fx_traces:
                extras.add_fx_traces(payload)
            key["seconds"]["snapshot"] = round(perf_counter() - start, 4)
            if job.error is None:  # else the call that failed is over
                _add_call_in_progress(payload, key)
            _add_sources(payload, options, key)
            # A smaller one where the first took too long is to be had quickly or not at all.
            seconds = options.write_budget / (1 if not problems else _LESS_TIME)
            path = writing.write_pickle(_in_order(payload), job.target, compress=options.compress, seconds=seconds)
            return path, form, problems
        except Exception as problem:
            problems.append(f"{form}: {_words(problem)}")
            key.setdefault("failures", []).append(problems[-1])
        payload = {}  # let go of what did not fit before the next try
    try:
        payload = {"segments": [], "device_traces": [], "oomscope": key}
        return writing.write_json(payload, job.target), "context only", problems
    except Exception as problem:
        problems.append(f"context only: {_words(problem)}")
    return None, "text", problems


def _in_order(payload: dict[str, Any]) -> dict[str, Any]:
    """What a person needs first comes first: a file that is cut off is read up to the cut, and the traces are long."""
    return {**{key: payload[key] for key in _FIRST if key in payload}, **payload}


def _add_call_in_progress(payload: dict[str, Any], key: dict[str, Any]) -> None:
    try:
        found = inflight.rows(payload, key)
    except Exception as problem:
        key.setdefault("failures", []).append(f"call in progress: {_words(problem)}")
        return
    if found and key.get("walk") is not None:
        key["tensors"] = key["tensors"] + found
        key["holders"] = sorted([*key["holders"], inflight.holder(found, key)], key=lambda row: -row["bytes"])


def _add_sources(payload: dict[str, Any], options: Options, key: dict[str, Any]) -> None:
    if not options.sources:
        return
    start = perf_counter()
    try:
        key["sources"] = sources.collect(payload, key)
    except Exception as problem:
        key.setdefault("failures", []).append(f"sources: {_words(problem)}")
    key["seconds"]["sources"] = round(perf_counter() - start, 4)


def _restrict(payload: dict[str, Any], options: Options) -> dict[str, Any]:
    if options.devices is not None:
        payload["segments"] = [item for item in payload["segments"] if item.get("device") in options.devices]
        traces = enumerate(payload["device_traces"])
        payload["device_traces"] = [trace if device in options.devices else [] for device, trace in traces]
    return payload


def _words(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.strerror} ({problem.filename})" if problem.filename else problem.strerror
    return f"{type(problem).__name__}: {problem}"


def tell_problems(dump: Dump) -> None:
    """Say why the dump is less than it should be."""
    if dump.problems:
        reasons = dict.fromkeys(problem.partition(": ")[2] for problem in dump.problems)
        outcome = f"it is {dump.form}" if dump.path else "nothing could be written"
        say(f"the dump is not whole ({'; '.join(reasons)}): {outcome}")
