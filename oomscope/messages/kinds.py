"""The kinds of messages, told by the layer that refused: by what a message says, never by whose product it names."""

from __future__ import annotations

from collections.abc import Mapping

ALLOCATOR = "allocator"
LIBRARY = "library"
DEVICE = "device"
HOST = "host"
ENGINE = "engine"
SUPERVISOR = "supervisor"
CHIP = "chip"
PROGRAM = "program"
NOBODY = "nobody"

LAYERS: Mapping[str, str | None] = {
    "torch-cuda": ALLOCATOR,
    "torch-hip": ALLOCATOR,
    "torch-xpu": ALLOCATOR,
    "torch-mps": ALLOCATOR,
    "torch-npu": ALLOCATOR,
    "torch-async": ALLOCATOR,
    "cuda-driver": DEVICE,
    "cublas": LIBRARY,
    "cudnn": LIBRARY,
    "nccl": LIBRARY,
    "host-ram": HOST,
    "pinned-host": HOST,
    "serving-budget": ENGINE,
    "jax": ALLOCATOR,
    "tensorflow": ALLOCATOR,
    "shared-memory": CHIP,
    "oom-killer": SUPERVISOR,
    "other": None,
}
"""The layer that each kind's message says refused, in the order of the questions by which a kind is found.

``allocator``: a framework's caching allocator. ``library``: a library that takes memory of its own. ``device``: the
driver or runtime of a device, whatever its brand. ``host``: the machine's memory. ``engine``: a serving engine's check
of its own budget; nothing was asked of the device. ``supervisor``: what ends a process from outside. ``chip``: one
kernel's on-chip memory. ``program``: another program's own allocator, pool, heap or check. ``nobody``: a warning, or no
shortage of memory. None: the message does not tell.
"""

KINDS = tuple(LAYERS)
"""What kind of message it is; `explain.schema.json` and ``docs/messages.md`` say what each means."""

_OF_WORDINGS = {
    "other.warning": NOBODY,
    "other.served": NOBODY,
    "other.launch": NOBODY,
    "other.program": PROGRAM,
    "other.planned": PROGRAM,
    "other.pool": PROGRAM,
    "other.pool_of_context": PROGRAM,
    "other.one_piece": PROGRAM,
}


def refused_by(kind: str, wording: str) -> str | None:
    """The layer that a message of `kind` in `wording` says refused; None where it does not tell."""
    return _OF_WORDINGS.get(wording, LAYERS[kind])
