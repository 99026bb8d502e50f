"""What a snapshot lacks: versions, the devices and who is on them, the process. Any may be missing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from oomscope.recording import process
from oomscope.recording.backend import Backend
from oomscope.version import __version__

SCHEMA_VERSION = 1


class Facts:
    """Collects parts one by one, so that one that fails costs only itself."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.failures: list[str] = []

    def ask(self, part: str, question: Callable[[], Any], otherwise: Any = None) -> Any:
        """The answer, or `otherwise` and a note."""
        try:
            return question()
        except Exception as problem:
            self.failures.append(f"{part}: {type(problem).__name__}: {problem}")
            return otherwise

    def collect(self, request: dict[str, int] | None) -> dict[str, Any]:
        """Everything but stacks and what the session itself knows."""
        self.ask("constants", self._backend.prepare)
        return {
            "schema_version": SCHEMA_VERSION,
            "version": __version__,
            "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "device_type": self._backend.device_type,
            "request": request,
            "devices": self.ask("devices", lambda: self._devices(request), []),
            **(self._backend.constants or {}),
            "allocator": self.ask("allocator", self._backend.allocator),
            "process": self.ask("process", process.describe),
        }

    def _devices(self, request: dict[str, int] | None) -> list[dict[str, Any]]:
        indices = set(self._backend.devices_in_use())
        if request is not None:
            indices.add(request["device"])
        return [self._device(index, request) for index in sorted(indices)]

    def _device(self, index: int, request: dict[str, int] | None) -> dict[str, Any]:
        name, uuid = self.ask("name", lambda: self._backend.device_name(index), (None, None))
        free, total = self.ask("memory", lambda: self._backend.memory_info(index), (None, None))
        statistics = self.ask("memory_stats", lambda: self._backend.memory_stats(index), {})
        limit = None
        if request is not None and request["device"] == index:
            free = request["device_free"]
            limit = request["limit_or_total"]
        return {
            "device": index,
            "name": name,
            "uuid": uuid,
            "total": total,
            "free": free,
            "cap": self._cap(index, total, limit),
            "memory_stats": statistics,
            "processes": self._processes(uuid, statistics.get("reserved_bytes.all.current")),
        }

    def _processes(self, uuid: str | None, reserved: int | None) -> list[dict[str, Any]] | None:
        return None if self._backend.nvml is None else self._backend.nvml.processes(uuid, reserved)

    def _cap(self, index: int, total: int | None, limit: int | None) -> int | None:
        """The bytes that this process may hold where that is less than the device; None where there is no cap."""
        if total is None:
            return None
        if limit is None:
            fraction = self.ask("cap", lambda: self._backend.fraction(index))
            limit = total if fraction is None else int(fraction * total)
        return limit if limit < total else None
