"""Who else is on the device: what NVML knows and the allocator does not. Optional; without it nothing is said."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from oomscope.recording import neighbours


class Nvml:
    """A short visit to NVML; every question may come back without an answer."""

    def __init__(self) -> None:
        self._library: Any = None
        try:
            library = importlib.import_module("pynvml")
            library.nvmlInit()
            self._library = library
        except Exception:
            self._library = None

    def driver(self) -> str | None:
        """The driver's version."""
        try:
            return _text(self._library.nvmlSystemGetDriverVersion())
        except Exception:
            return None

    def processes(self, uuid: str | None, reserved: int | None = None) -> list[dict[str, Any]] | None:
        """Each process on the device of this UUID: number, bytes, name, and whether it is this one.

        In a container NVML may give the host's process numbers, or list nobody. A name is given where the number is
        one that this process knows as well.

        Args:
            uuid: the device.
            reserved: bytes that this process's allocator has reserved on it, which tell which process it is.
        """
        if self._library is None or uuid is None:
            return None
        try:
            handle = self._library.nvmlDeviceGetHandleByUUID(uuid.encode())
            found = [_process(item) for item in self._library.nvmlDeviceGetComputeRunningProcesses(handle)]
            knows = neighbours.sees_host_numbers()
            rows = neighbours.mark_own(found, reserved, neighbours.own_numbers(_status()), knows_numbers=knows)
            return [{**row, "name": _name(row["pid"], row["this"], knows_numbers=knows)} for row in rows]
        except Exception:
            return None


def _process(item: Any) -> dict[str, Any]:
    used = item.usedGpuMemory
    return {"pid": int(item.pid), "bytes": None if used is None else int(used)}


def _status() -> str:
    try:
        return Path("/proc/self/status").read_text()
    except OSError:
        return ""


def _name(pid: int, this: bool | None, *, knows_numbers: bool) -> str | None:
    # A number of the host's may be another process's in here.
    where = "self" if this else str(pid) if knows_numbers else None
    try:
        return None if where is None else Path(f"/proc/{where}/comm").read_text().strip()
    except OSError:
        return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
