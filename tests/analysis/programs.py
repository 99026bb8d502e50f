"""Small training programs as traces: what an allocator would record of them, without a GPU."""

from __future__ import annotations

from typing import Any

from oomscope.history import DeviceHistory, device_history, recorded_config
from oomscope.model import Snapshot
from tests.builders import block, entry, frame, loaded, segment

MIB = 1 << 20
TORCH = "/venv/lib/python3.12/site-packages/torch"
MAIN = frame("<module>", 900, "/workspace/train/train.py")
CALL = frame("_call_impl", 1790, f"{TORCH}/nn/modules/module.py")

LOADING = (
    frame("convert", 1370, f"{TORCH}/nn/modules/module.py"),
    frame("_apply", 965, f"{TORCH}/nn/modules/module.py"),
    frame("_apply", 934, f"{TORCH}/nn/modules/module.py"),
    frame("to", 1384, f"{TORCH}/nn/modules/module.py"),
    frame("make_model", 10, "/workspace/train/train.py"),
    MAIN,
)
MOVING_BUFFER = (
    frame("convert", 1370, f"{TORCH}/nn/modules/module.py"),
    frame("_apply", 1035, f"{TORCH}/nn/modules/module.py"),
    *LOADING[2:],
)
BATCH = (frame("batch", 20, "/workspace/train/train.py"), MAIN)
LOSS = (frame("loss", 40, "/workspace/train/train.py"), MAIN)
STATE = (
    frame("_init_group", 178, f"{TORCH}/optim/adam.py"),
    frame("step", 238, f"{TORCH}/optim/adam.py"),
    frame("wrapper", 533, f"{TORCH}/optim/optimizer.py"),
    frame("train", 50, "/workspace/train/train.py"),
    MAIN,
)
ZERO_GRAD = (frame("zero_grad", 975, f"{TORCH}/optim/optimizer.py"), *STATE[3:])
UPDATE = (frame("_multi_tensor_adam", 791, f"{TORCH}/optim/adam.py"), *STATE[1:])
BACKWARD = ()
"""The engine's threads have no Python frames."""


def forward(line: int = 31) -> tuple[dict[str, Any], ...]:
    """A stack inside a module's forward."""
    return (
        frame("forward", 134, f"{TORCH}/nn/modules/linear.py"),
        CALL,
        frame("forward", line, "/workspace/train/model.py"),
        CALL,
        frame("train", 45, "/workspace/train/train.py"),
        MAIN,
    )


class Program:
    """Records allocations as they happen; every block stands in a segment of its own."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.live: dict[int, tuple[int, list[dict[str, Any]]]] = {}
        self.next = 1 << 40

    @property
    def time(self) -> int:
        return 1_700_000_000_000_000 + 10 * len(self.entries)

    def alloc(self, size: int, stack: tuple[dict[str, Any], ...]) -> int:
        address = self.next
        self.next += -(-size // (2 * MIB)) * 2 * MIB
        self.live[address] = (size, list(stack))
        self._add("alloc", address, size, stack)
        return address

    def free(self, *addresses: int, by: tuple[dict[str, Any], ...] | None = None) -> None:
        """Free blocks; `by` is the stack that frees them (``context="all"``), else that of their allocation."""
        for address in addresses:
            size, stack = self.live.pop(address)
            self._add("free_requested", address, size, by if by is not None else tuple(stack))
            self._add("free_completed", address, size, by if by is not None else tuple(stack))

    def begin_recording(self, *, keep_stacks: bool = False) -> None:
        """Forget what was recorded: a recording that begins now, or (with stacks) one that is started again."""
        self.entries.clear()
        self.annotations.clear()
        if not keep_stacks:
            self.live = {address: (size, []) for address, (size, _) in self.live.items()}

    def oom(self, size: int, stack: tuple[dict[str, Any], ...]) -> None:
        self._add("oom", 0, size, stack)

    def mark(self, name: str, stage: str) -> None:
        self.annotations.append({"stage": stage, "name": name, "device": 0, "time_us": self.time - 5})

    def _add(self, action: str, address: int, size: int, stack: tuple[dict[str, Any], ...]) -> None:
        self.entries.append(entry(action, address, size, time_us=self.time, frames=list(stack)))

    def snapshot(self, **top: Any) -> Snapshot:
        segments = [
            segment(address, [block(size, frames=stack)], kind="large" if size > MIB else "small")
            for address, (size, stack) in sorted(self.live.items())
        ]
        return loaded(segments, [self.entries], external_annotations=self.annotations, **top)

    def history(self, **top: Any) -> tuple[Snapshot, DeviceHistory]:
        snapshot = self.snapshot(**top)
        return snapshot, device_history(snapshot.devices[0], recorded_config(snapshot))


class Training(Program):
    """A model of two layers, trained with Adam; `step` can be told to leave something behind."""

    SIZES = (6 * MIB, 3 * MIB)

    def __init__(self, *, annotated: bool = True) -> None:
        super().__init__()
        self.annotated = annotated
        self.parameters = [self.alloc(size, LOADING) for size in self.SIZES]
        self.states: list[int] = []

    def forward(self, scale: int = 1) -> list[int]:
        kept = [self.alloc(4 * MIB * scale, forward(31 + layer)) for layer in range(4)]
        self.free(self.alloc(2 * MIB * scale, forward(40)))
        return kept

    def step(self, *, keep: int = 0, scale: int = 1) -> list[int]:
        """One iteration; returns the first `keep` activations, which stay alive."""
        batch = self.alloc(MIB, BATCH)
        activations = self.forward(scale)
        loss = self.alloc(512, LOSS)
        gradients = [self.alloc(size, BACKWARD) for size in reversed(self.SIZES)]
        self.free(self.alloc(5 * MIB, BACKWARD))
        self.free(*activations[keep:])
        self.optimize()
        self.free(*gradients, loss, batch)
        return activations[:keep]

    def optimize(self) -> None:
        if self.annotated:
            self.mark("Optimizer.step#AdamW.step", "START")
        if not self.states:
            self.states = [self.alloc(size, STATE) for size in self.SIZES for _ in range(2)]
        self.free(self.alloc(6 * MIB, UPDATE))
        if self.annotated:
            self.mark("Optimizer.step#AdamW.step", "END")
