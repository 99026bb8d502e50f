"""A backend without a GPU: CPU tensors stand for those on the device, and OOMs come when a test says so."""

from __future__ import annotations

from typing import Any

import pytest

from oomscope.recording.backend import Backend, Levels

torch = pytest.importorskip("torch", reason="the fake backend is made of CPU tensors")

TOTAL = 16 << 30
MESSAGE = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 GiB"


class FakeBackend(Backend):
    """Keeps what was asked of it in `calls`."""

    device_type = "cpu"

    def __init__(self, *, up: bool = True, observer: bool = True, recording: bool = False) -> None:
        super().__init__(torch)
        self.calls: list[str] = []
        self.observers: list[Any] = []
        self.up = up
        self.has_observer = observer
        self.recording = recording
        self.waiting: list[Any] = []
        self.never: str | None = None
        self.not_now: str | None = None
        self.snapshot_error: Exception | None = None
        self.allocated = 1 << 30
        self.retries = 0
        self.bulk = b""

    def why_never(self) -> str | None:
        return self.never

    def why_not_now(self) -> str | None:
        return self.not_now

    def is_up(self) -> bool:
        return self.up

    def when_up(self, callback: Any) -> None:
        self.waiting.append(callback)

    def bring_up(self) -> None:
        for callback in self.waiting:
            callback()
        self.up = True

    def is_history_on(self) -> bool:
        return self.recording

    def start_history(self, options: Any) -> None:
        self.calls.append(f"start {options.history} {options.stacks} {options.context} {options.max_entries}")
        self.recording = True

    def stop_history(self) -> None:
        self.calls.append("stop")
        self.recording = False

    def observe(self, observer: Any) -> None:
        if not self.has_observer:
            raise AttributeError("module 'torch._C' has no attribute '_cuda_attach_out_of_memory_observer'")
        self.observers.append(observer)

    def snapshot(self) -> dict[str, Any]:
        self.calls.append("snapshot")
        if self.snapshot_error is not None:
            raise self.snapshot_error
        assert self.recording, "a snapshot after the history was dropped"
        return {
            "segments": self.segments(),
            "device_traces": [[{"action": "oom", "size": 1 << 31}], [{"action": "alloc"}]],
        }

    def segments(self) -> list[dict[str, Any]]:
        return [{"device": 0, "address": 1 << 40, "blocks": []}, {"device": 1, "address": 1 << 41, "blocks": []}]

    def devices_in_use(self) -> list[int]:
        return [0] if self.up else []

    def current_device(self) -> int:
        return 0

    def levels(self, device: int) -> Levels:
        return Levels(self.allocated, 2 * self.allocated, self.allocated, 2 * self.allocated, self.retries)

    def memory_stats(self, device: int) -> dict[str, int]:
        return {"allocated_bytes.all.current": self.allocated, "reserved_bytes.all.current": 2 * self.allocated}

    def memory_info(self, device: int) -> tuple[int, int]:
        return 1 << 30, TOTAL

    def fraction(self, device: int) -> float | None:
        return None

    def device_name(self, device: int) -> tuple[str, str | None]:
        return "Fake GPU", None

    def allocator(self) -> dict[str, Any]:
        return {"backend": "native", "conf": None}

    def run_out(self, device: int = 0) -> None:
        """What torch does at an OOM: tell the observers, then raise."""
        self.notify(device)
        raise torch.OutOfMemoryError(MESSAGE)

    def notify(self, device: int = 0) -> None:
        for observer in self.observers:
            observer(device, 2 << 30, TOTAL, 1 << 30)
