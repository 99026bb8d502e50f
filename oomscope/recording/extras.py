"""What a recording asks of torch beyond stacks, where its release has it: each is an option, and can be left out."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

from oomscope.recording.options import Options

_ARGUMENTS = {
    "all_threads": "global_record_annotations",
    "compile_context": "compile_context",
    "pinned": "record_pinned_host_memory",
}
"""Options by the arguments of ``_record_memory_history`` that they stand for: 2.8, 2.8 and 2.14."""
FX_TRACES = "augment_with_fx_traces"


def arguments(record: Callable[..., Any], options: Options) -> dict[str, bool]:
    """Those of `_ARGUMENTS` that are wanted and that `record`, as this release has it, takes."""
    taken = inspect.signature(record).parameters
    return {name: True for option, name in _ARGUMENTS.items() if name in taken and _is_wanted(option, options)}


def _is_wanted(option: str, options: Options) -> bool:
    wanted: bool | None = getattr(options, option)
    return has_compiled() if wanted is None else wanted


def has_compiled() -> bool:
    """Whether torch.compile has looked at any code of this process. Optimizers import it, so that is no sign."""
    compiler = sys.modules.get("torch._dynamo.convert_frame")
    return bool(getattr(compiler, "FRAME_COUNTER", 0))


def asked(started: Iterable[str], options: Options) -> list[str]:
    """What was asked for, by torch's own names, as the dump keeps it: arguments, and the lines of generated code."""
    traces = [FX_TRACES] if options.fx_traces and _augment() is not None else []
    return [*started, *traces]


def add_fx_traces(snapshot: dict[str, Any]) -> None:
    """Add to frames of generated code the line it was made from, as ``augment_with_fx_traces`` does (torch 2.10+).

    torch looks at each frame of each entry, which takes seconds at the worst moment. Frames are shared between stacks,
    so each is looked at once; and where torch has kept no lines, as it is unless
    ``torch.fx.experimental._config.enrich_profiler_metadata`` was set before compiling, none is.
    """
    traceback = sys.modules.get("torch.fx.traceback")
    augment = _augment()
    if augment is None or not getattr(traceback, "_FX_METADATA_REGISTRY", None):
        return
    blocks = (block for segment in snapshot.get("segments", ()) for block in segment.get("blocks", ()))
    entries = (entry for trace in snapshot.get("device_traces", ()) for entry in trace)
    found: dict[int, Any] = {}
    for rows in (blocks, entries):
        _collect(rows, found)
    augment(list(found.values()))


def _collect(rows: Iterable[dict[str, Any]], found: dict[int, Any]) -> None:
    stacks: set[int] = set()
    for row in rows:
        frames = row.get("frames")
        if frames and id(frames) not in stacks:
            stacks.add(id(frames))
            found.update((id(frame), frame) for frame in frames)


def _augment() -> Callable[[list[Any]], Any] | None:
    if "torch" not in sys.modules:
        return None
    found: Callable[[list[Any]], Any] | None = getattr(importlib.import_module("torch._utils"), "_augment_frames", None)
    return found
