"""Grows a real capture: a stretch of its trace that leaves everything as it found it is repeated.

``python -m tests.benchmarks.grow SNAPSHOT ENTRIES OUT``. Ten million entries take 8 GB of memory to make.
"""

from __future__ import annotations

import gc
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

Entry = dict[str, Any]
_SIGNS = {
    "alloc": (1, 0),
    "free_requested": (-1, 1),
    "free_completed": (0, -1),
    "segment_alloc": (3, 0),
    "segment_free": (-3, 0),
    "segment_map": (5, 0),
    "segment_unmap": (-5, 0),
}
"""What an action changes: what is live, and what waits for a stream."""


def grow(document: dict[str, Any], entries: int, device: int = 0) -> dict[str, Any]:
    """`document` with about `entries` entries in the trace of `device`.

    What is repeated begins and ends with the same blocks live and the same segments, so the grown trace is one that the
    allocator could have written; only its times go on.

    Raises:
        ValueError: no stretch leaves everything as it found it.
    """
    trace: list[Entry] = document["device_traces"][device]
    begin, end = longest_return(trace)
    if end - begin < 2:
        raise ValueError("nothing in this trace comes back to where it was")
    times = max(0, -(-(entries - len(trace)) // (end - begin)))
    pause = trace[end]["time_us"] - trace[begin]["time_us"] if "time_us" in trace[0] else 0
    grown = trace[:end]
    for number in range(1, times + 1):
        grown += [_later(entry, number * pause) for entry in trace[begin:end]]
    grown += [_later(entry, times * pause) for entry in trace[end:]]
    traces = list(document["device_traces"])
    traces[device] = grown
    return {**document, "device_traces": traces}


def _later(entry: Entry, pause: int) -> Entry:
    copy = dict(entry)
    if "time_us" in entry:
        copy["time_us"] += pause
    # Torch writes texts and lists anew for nearly every entry; the frames in the lists are the same objects.
    for key in ("compile_context", "user_metadata"):
        if entry.get(key):
            copy[key] = "".join([entry[key][0], entry[key][1:]])
    if copy.get("frames") and entry["action"] != "free_completed":
        copy["frames"] = list(entry["frames"])
    return copy


def longest_return(trace: list[Entry]) -> tuple[int, int]:
    """The longest stretch, as entries begin to end, after which the same is live as before it."""
    rng = np.random.default_rng(0)
    names: dict[tuple[int, int], int] = {}
    change = np.zeros((len(trace), 2), np.uint64)
    weights = rng.integers(1, 1 << 62, len(trace) + 1, np.uint64)
    for row, entry in enumerate(trace):
        live, waits = _SIGNS.get(entry["action"], (0, 0))
        weight = int(weights[names.setdefault((entry.get("addr", 0), entry["size"]), len(names))])
        change[row] = (live * weight) % (1 << 64), (waits * weight) % (1 << 64)
    state = np.zeros((len(trace) + 1, 2), np.uint64)
    state[1:] = np.cumsum(change, axis=0)
    code = state[:, 0] * np.uint64(0x9E3779B97F4A7C15) + state[:, 1]
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    lengths = np.arange(len(code)) - first[inverse]
    lengths[-1] = 0  # something has to follow
    end = int(np.argmax(lengths))
    return int(first[inverse[end]]), end


def main() -> int:
    """Grow a file."""
    source, entries, target = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    gc.disable()
    with source.open("rb") as file:
        document = pickle.load(file)
    document = grow(document, entries)
    with target.open("wb") as file:
        pickle.dump(document, file, protocol=4)
    print(f"{len(document['device_traces'][0]):,} entries, {target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
