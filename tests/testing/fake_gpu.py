"""A GPU for tests of tests: what is allocated on it is recorded as torch's allocator would record it."""

from __future__ import annotations

from typing import Any

from oomscope.recording import backend
from oomscope.recording.backend import Levels
from oomscope.recording.step_log import now_us
from tests.analysis.programs import MIB, Program
from tests.builders import block, frame, segment, snapshot
from tests.recording.fake import FakeBackend

LOOP = frame("train_loop", 30, "/workspace/test_model.py")


class _Clocked(Program):
    """A program whose entries have the times at which they happen."""

    @property
    def time(self) -> int:
        return now_us()


class FakeGpu(FakeBackend):
    """Records what `alloc` and `free` do while history is on; what was there before has no stack."""

    def __init__(self) -> None:
        super().__init__()
        self.program = _Clocked()

    def start_history(self, options: Any) -> None:
        super().start_history(options)
        self.program.begin_recording()

    def levels(self, device: int) -> Levels:
        allocated = sum(size for size, _ in self.program.live.values())
        return Levels(allocated, allocated, allocated, allocated)

    def snapshot(self) -> Any:
        self.calls.append("snapshot")
        segments = [
            segment(address, [block(size, frames=stack)], kind="large" if size > MIB else "small")
            for address, (size, stack) in sorted(self.program.live.items())
        ]
        return snapshot(segments, [self.program.entries])


def _gpu() -> FakeGpu:
    found = backend.current()
    assert isinstance(found, FakeGpu)
    return found


def alloc(size: int, function: str, line: int = 10) -> int:
    """A block that `function` makes."""
    return _gpu().program.alloc(size, (frame(function, line, "/workspace/test_model.py"), LOOP))


def free(*addresses: int) -> None:
    """Give blocks back."""
    _gpu().program.free(*addresses)


def step(*, keep: int) -> None:
    """One pass of a loop: two lines, each at its own place in it; `keep` bytes are never given back."""
    program = _gpu().program

    def at(line: int) -> dict[str, Any]:
        return frame("train_loop", line, "/workspace/test_model.py")

    first = program.alloc(8 * MIB, (frame("forward", 5, "/workspace/test_model.py"), at(31)))
    if keep:
        program.alloc(keep, (frame("keep", 7, "/workspace/test_model.py"), at(32)))
    second = program.alloc(4 * MIB, (frame("backward", 6, "/workspace/test_model.py"), at(33)))
    program.free(second, first)
