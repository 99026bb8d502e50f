"""Random legal histories of the toy allocator."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from tests.builders import frame
from tests.oracle.toy import MIB, Toy

SCRIPT = "/workspace/train.py"
STACKS = [
    [frame("forward", line, "/workspace/model.py"), frame("step", 20, SCRIPT), frame("<module>", 40 + line, SCRIPT)]
    for line in range(4)
] + [
    [frame("backward", 5, "/venv/site-packages/torch/autograd/__init__.py"), frame("<module>", 45, SCRIPT)],
    [frame("step", 9, "/venv/lib/python3.12/site-packages/torch/optim/adam.py"), frame("<module>", 46, SCRIPT)],
    # Another thread of the program.
    [frame("load", 3, SCRIPT), frame("run", 982, "/usr/lib/python3.12/threading.py")],
]  # fmt: skip


class Operation(NamedTuple):
    """One thing that a program does; `choice` picks the block."""

    kind: str
    size: int
    stream: int
    pool: int
    stack: int
    choice: int


OPERATIONS = st.lists(
    st.builds(
        Operation,
        st.sampled_from(["malloc"] * 6 + ["free"] * 4 + ["free_elsewhere", "complete", "empty_cache"]),
        st.integers(1, 3 * MIB) | st.integers(1, 60 * MIB) | st.sampled_from([512, MIB, MIB + 1, 10 * MIB, 20 * MIB]),
        st.sampled_from([0, 0, 0, 7]),
        st.sampled_from([0, 0, 0, 0, 1]),
        st.integers(0, len(STACKS) - 1),
        st.integers(0, 1 << 20),
    ),
    min_size=1,
    max_size=60,
)


class Window(NamedTuple):
    """Which part of a history is recorded."""

    kind: str
    share: float


WINDOWS = st.builds(Window, st.sampled_from(["whole", "whole", "late", "restarted", "wrapped"]), st.floats(0.05, 0.95))
LIMITS = st.sampled_from([1 << 40, 1 << 40, 160 * MIB, 60 * MIB])


def run(operations: list[Operation], expandable: bool, limit: int, window: Window) -> Toy:
    """The toy after `operations`, of which `window` was recorded."""
    toy = Toy(STACKS, expandable, limit, recording=window.kind != "late")
    begin = int(window.share * len(operations)) if window.kind in ("late", "restarted") else -1
    toy.malloc(-1, 1, 0, 0, 0)  # a snapshot without anything has no device
    for number, operation in enumerate(operations):
        if number == begin:
            toy.restart()
        live, pending = sorted(toy.live), sorted(toy.pending)
        if operation.kind == "malloc":
            toy.malloc(number, operation.size, operation.stream, operation.pool, operation.stack)
        elif operation.kind.startswith("free") and live:
            name = live[operation.choice % len(live)]
            toy.free(name, operation.stack, elsewhere=operation.kind == "free_elsewhere")
        elif operation.kind == "complete" and pending:
            toy.complete(pending[operation.choice % len(pending)], operation.stack)
        elif operation.kind == "empty_cache":
            toy.empty_cache(operation.stack)
    if window.kind == "wrapped":
        toy.keep_last(max(int(window.share * len(toy.entries)), 1))
    return toy
