"""A snapshot whose every string is an attack, or a secret."""

from __future__ import annotations

import io
import pickle
from functools import cache

from oomscope.analysis import Findings, analyze
from oomscope.model import Snapshot
from oomscope.reading import load
from tests.builders import block, frame, segment

SCRIPT = '</script><img src=x onerror="alert(1)">.py'
NASTY = "f|`*_[x](http://evil.example)@octocat #12 \x1b[31m\u202ered\x00\n## heading"
LONG = "x" * 1_000_000
MIB = 1 << 20


@cache
def hostile_snapshot() -> Snapshot:
    """A live block and a failed request, whose frames are hostile; with a context that is private."""
    stacks = [
        [frame(NASTY, 1, SCRIPT), frame(LONG, 2, f"/home/alice/secret_project/{LONG}.py")],
        [frame("train_the_secret", 3, "/home/alice/secret_project/train.py")],
    ]
    segments = [segment(0x7F0000000000, [block(20 * MIB, frames=stacks[0])])]
    trace = [
        {"action": "segment_alloc", "addr": 0x7F0000000000, "size": 20 * MIB, "stream": 0, "frames": stacks[0]},
        {"action": "alloc", "addr": 0x7F0000000000, "size": 20 * MIB, "stream": 0, "frames": stacks[0]},
        {"action": "oom", "device_free": MIB, "size": 40 * MIB, "stream": 0, "frames": stacks[1]},
    ]
    for at, item in enumerate(trace):
        item["time_us"] = 1_700_000_000_000_000 + at
    plain = {
        "segments": segments,
        "device_traces": [trace],
        "allocator_settings": {"expandable_segments": False},
        "external_annotations": [{"stage": "START", "name": "secret stage", "device": 0, "time_us": 1}],
        "oomscope": {
            "schema_version": 1,
            "torch": "2.11.0",
            "process": {"host": "secret-host", "argv": ["train.py", "--token=secret"], "environment": {"U": "alice"}},
            "exception": {"type": "torch.OutOfMemoryError", "message": "CUDA out of memory. /home/alice"},
            "reason": "oom",
            "platform": "Linux-secret",
            "request": {"device": 0, "alloc_size": 40 * MIB, "limit_or_total": 64 * MIB, "device_free": MIB},
            "stacks": {"failing": [frame("secret_step", 9, "/home/alice/train.py")], "main": []},
            "recording": {"started_us": 1, "max_entries": 1000, "stacks": "python", "context": "all"},
            "steps": [{"name": "secret step 1", "begin_us": 1_700_000_000_000_000, "end_us": 1_700_000_000_000_002}],
            "sources": [
                {
                    "filename": "/home/alice/secret_project/train.py",
                    "line": 3,
                    "first": 2,
                    "text": [NASTY, SCRIPT, LONG],
                }
            ],
            "marks": [{"name": "secret mark", "time_us": 1_700_000_000_000_001}],
            "metadata": {"secret": "secret"},
            "devices": [
                {
                    "device": 0,
                    "name": "NVIDIA H200",
                    "uuid": "GPU-secret",
                    "total": 64 * MIB,
                    "free": MIB,
                    "processes": [{"pid": 7, "bytes": MIB, "name": "/home/alice/secret_process", "this": False}],
                }
            ],
            "tensors": [
                {
                    "device": 0,
                    "address": 0x7F0000000000,
                    "bytes": 20 * MIB,
                    "dtype": "float32",
                    "shape": [5 * MIB],
                    "category": "parameter",
                    "name": "secret_model.0.weight",
                    "holders": ["secret_train: secret_list[3]", "secret.module.CACHE['secret key']"],
                    "saved_for": "SecretBackward0",
                }
            ],
        },
    }
    return load(io.BytesIO(pickle.dumps(plain)))


@cache
def hostile_findings() -> Findings:
    """The findings about it."""
    return analyze(hostile_snapshot(), whatif=False)
