"""Who else is on the device: what NVML knows and the allocator does not. Optional; without it nothing is said."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any


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

    def processes(self, uuid: str | None) -> list[dict[str, Any]] | None:
        """Each process on the device of this UUID with its bytes, None where NVML does not say how many.

        In a container NVML gives the host's process ids, or none at all.
        """
        if self._library is None or uuid is None:
            return None
        try:
            handle = self._library.nvmlDeviceGetHandleByUUID(uuid.encode())
            return [_process(item) for item in self._library.nvmlDeviceGetComputeRunningProcesses(handle)]
        except Exception:
            return None


def _process(item: Any) -> dict[str, Any]:
    used = item.usedGpuMemory
    return {
        "pid": int(item.pid),
        "bytes": None if used is None else int(used),
        "name": _name(item.pid),
        "this": item.pid == os.getpid(),
    }


def _name(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
