"""Snapshots in the plain containers that each release of torch writes, for tests that need one made to measure.

`segment`, `block` and `entry` give the dicts of torch 2.10; `snapshot` puts them together and takes away or adds what
other releases write.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

from oomscope.model import Snapshot
from oomscope.reading import load

Dict = dict[str, Any]

RELEASES = ("1.13", "2.0", "2.1", "2.2", "2.4", "2.7", "2.8", "2.9", "2.10", "2.12", "2.14", "2.15")


def frame(name: str = "forward", line: int = 1, filename: str = "/workspace/train/model.py", **extra: Any) -> Dict:
    """One level of a stack."""
    return {"name": name, "filename": filename, "line": line, **extra}


def block(
    size: int, state: str = "active_allocated", *, requested: int | None = None, frames: Sequence[Dict] = ()
) -> Dict:
    """A block; `segment` gives it its address."""
    return {
        "address": None,
        "size": size,
        "requested_size": size if requested is None else requested,
        "state": state,
        "frames": list(frames),
    }


def segment(
    address: int,
    blocks: Sequence[Dict],
    *,
    device: int = 0,
    stream: int = 0,
    kind: str = "large",
    pool: tuple[int, int] = (0, 0),
    expandable: bool = False,
    frames: Sequence[Dict] = (),
) -> Dict:
    """A segment of `blocks`, which are laid one after another from `address` on."""
    at = address
    for item in blocks:
        item["address"] = at
        at += item["size"]
    active = [item for item in blocks if item["state"] != "inactive"]
    allocated = [item for item in blocks if item["state"] == "active_allocated"]
    return {
        "device": device,
        "address": address,
        "total_size": at - address,
        "allocated_size": sum(item["size"] for item in allocated),
        "active_size": sum(item["size"] for item in active),
        "requested_size": sum(item["requested_size"] for item in active),
        "stream": stream,
        "segment_type": kind,
        "segment_pool_id": pool,
        "is_expandable": expandable,
        "frames": list(frames),
        "blocks": list(blocks),
    }


def entry(
    action: str,
    address: int,
    size: int,
    *,
    stream: int = 0,
    time_us: int = 1_700_000_000_000_000,
    frames: list[Dict] | None = None,
    **extra: Any,
) -> Dict:
    """A trace entry; for ``oom`` the address is the device's free bytes."""
    made: Dict = {
        "action": action,
        "device_free" if action == "oom" else "addr": address,
        "size": size,
        "stream": stream,
        "time_us": time_us,
        "compile_context": "N/A",
        "user_metadata": "",
        **extra,
    }
    if frames is not None:
        made["frames"] = frames
    return made


def settings(**changes: Any) -> Dict:
    """The allocator's settings as torch 2.9 and later write them."""
    return {
        "PYTORCH_CUDA_ALLOC_CONF": "",
        "max_split_size": -1,
        "garbage_collection_threshold": 0.0,
        "expandable_segments": False,
        "pinned_num_register_threads": 1,
        "release_lock_on_cudamalloc": False,
        "pinned_use_cuda_host_register": False,
        "graph_capture_record_stream_reuse": False,
        "roundup_power2_divisions": {str(1 << power): 0 for power in range(16)},
        **changes,
    }


def snapshot(
    segments: Sequence[Dict] = (), traces: Sequence[Sequence[Dict]] = ((),), *, release: str = "2.10", **top: Any
) -> Any:
    """The document that torch `release` writes for these segments and traces (a bare list for 1.13)."""
    document: Dict = {
        "segments": list(segments),
        "device_traces": [list(trace) for trace in traces],
        "allocator_settings": settings(),
        "external_annotations": [],
        **top,
    }
    _age(document, tuple(int(part) for part in release.split(".")))
    return document["segments"] if release == "1.13" else document


def _age(document: Dict, release: tuple[int, ...]) -> None:
    """Take away what `release` did not write yet, and add what it did."""
    entries = [item for trace in document["device_traces"] for item in trace]
    since = {"time_us": (2, 2), "compile_context": (2, 8), "user_metadata": (2, 10)}
    for item in entries:
        for key, first in since.items():
            if release < first:
                item.pop(key, None)
        if release >= (2, 12):
            item.setdefault("pool_id", (0, 0))
        if release >= (2, 15):
            item.setdefault("internal_metadata", "mallocWithAddress")
    if release < (2, 9):
        document["allocator_settings"].pop("graph_capture_record_stream_reuse")
    if release < (2, 5):
        document.pop("external_annotations")
    if release < (2, 3):
        document.pop("allocator_settings")
    if release >= (2, 14):
        document.setdefault("host_segments", [])
        document.setdefault("host_traces", [])
    if release < (2, 1):
        _before_2_1(document["segments"], release)


def _before_2_1(segments: list[Dict], release: tuple[int, ...]) -> None:
    for item in segments:
        for key in ("segment_pool_id", "is_expandable", "frames"):
            item.pop(key)
        for piece in item["blocks"]:
            tenant = {"addr": piece.pop("address"), "real_size": piece["requested_size"]}
            if frames := piece.pop("frames"):
                tenant["frames"] = frames
            piece["history"] = [tenant]
            if release < (2, 0):
                piece.pop("requested_size")
        if release < (2, 0):
            item.pop("requested_size")


def pickled(document: Any, protocol: int = 4) -> io.BytesIO:
    """A file with `document`."""
    return io.BytesIO(pickle.dumps(document, protocol))


def loaded(segments: Sequence[Dict] = (), traces: Sequence[Sequence[Dict]] = ((),), **top: Any) -> Snapshot:
    """`snapshot(...)` through a file."""
    return load(pickled(snapshot(segments, traces, **top)))
