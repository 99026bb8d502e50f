"""What is asked of torch on devices that are none of CUDA's: XPU, MTIA and MPS.

XPU and MTIA record a history where their release has it; elsewhere a dump has figures, names and holders. None of them
was at hand: tests drive them through stand-ins for torch's own functions, as torch 2.11 to 2.15 declare these.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from oomscope.recording.backend import Backend, Levels, Observer, quietly
from oomscope.recording.options import Options
from oomscope.recording.pool_names import pool_rows


class OtherBackend(Backend):
    """A device whose module has the names of `torch.accelerator.memory`, and perhaps a history."""

    label = "This device"

    @property
    def module(self) -> Any:
        """``torch.xpu`` and its like."""
        return getattr(self.torch, self.device_type)

    def is_there(self) -> bool:
        """Whether this build of torch has such a device, and the machine has one."""
        module = getattr(self.torch, self.device_type, None)
        return module is not None and bool(quietly(module.is_available, False))

    def why_never(self) -> str | None:
        """Why nothing can be recorded in this process, if that is known."""
        return None if self.is_there() else f"torch {self.torch.__version__} sees no {self.label} device"

    def prepare(self) -> None:
        """Find out now what never changes; NVML knows only NVIDIA's cards."""
        if self.constants is None:
            super().prepare()
            self.nvml = None
            self.constants = {**(self.constants or {}), "driver": None}

    def is_up(self) -> bool:
        """Whether the device is initialised in this process."""
        return bool(self.module.is_initialized())

    def when_up(self, callback: Callable[[], None]) -> None:
        """Call back once the device is initialised; at once where it is."""
        self.module._lazy_call(callback)

    def is_history_on(self) -> bool:
        """Whether someone records already, where torch can say it."""
        asked = getattr(self.torch._C, f"_{self.device_type}_isHistoryEnabled", None)
        return bool(asked()) if asked is not None else False

    def without_history(self) -> str:
        """What is said where the device keeps no history."""
        return (
            f"torch {self.torch.__version__} keeps no history of {self.label} memory: a dump will have figures, names "
            "and holders, and no timeline"
        )

    def segments(self) -> list[dict[str, Any]]:
        """The segments alone."""
        return list(self.snapshot()["segments"])

    def pinned_stats(self) -> dict[str, int]:
        """Torch counts pinned memory for CUDA alone."""
        return {}

    def pools(self) -> list[dict[str, Any]]:
        """The program's own memory pools, with the way to each."""
        return pool_rows([self.module, getattr(self.module, "memory", None)])

    def devices_in_use(self) -> list[int]:
        """The devices on which this process holds memory."""
        if not self.is_up():
            return []
        return [index for index in range(self.module.device_count()) if any(self.levels(index)[:2])]

    def levels(self, device: int) -> Levels:
        """What a device has now."""
        stats = self.memory_stats(device)
        allocated, reserved = (int(stats.get(f"{name}_bytes.all.current", 0)) for name in ("allocated", "reserved"))
        peak, peak_reserved = (stats.get(f"{name}_bytes.all.peak") for name in ("allocated", "reserved"))
        return Levels(allocated, reserved, peak, peak_reserved, stats.get("num_alloc_retries"))

    def current_device(self) -> int:
        """The device of this thread."""
        return int(self.module.current_device())

    def memory_stats(self, device: int) -> dict[str, int]:
        """Torch's counters under their own names."""
        return {key: value for key, value in self.module.memory_stats(device).items() if isinstance(value, int)}

    def memory_info(self, device: int) -> tuple[int, int]:
        """Free and total bytes of the device."""
        asked = getattr(self.module, "mem_get_info", None) or self.torch.accelerator.get_memory_info
        free, total = asked(device)
        return int(free), int(total)

    def fraction(self, device: int) -> float | None:
        """The share of the device that this process may use, where torch can say it."""
        asked = getattr(self.module, "get_per_process_memory_fraction", None)
        return None if asked is None else float(asked(device))

    def device_name(self, device: int) -> tuple[str, str | None]:
        """The device's name."""
        properties = self.module.get_device_properties(device)
        name = properties.get("name") if isinstance(properties, dict) else getattr(properties, "name", None)
        return str(name or self.label), None

    def versions(self) -> dict[str, Any]:
        """Torch's version; there is no CUDA."""
        return {"torch": str(self.torch.__version__), "cuda": None}

    def allocator(self) -> dict[str, Any]:
        """How the environment configures the allocator."""
        names = (f"PYTORCH_{self.device_type.upper()}_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
        return {"backend": "native", "conf": next((os.environ[name] for name in names if name in os.environ), None)}


class XpuBackend(OtherBackend):
    """Intel's GPUs: a history from torch 2.11 on, in the same form as CUDA's."""

    device_type = "xpu"
    label = "XPU"

    def keeps_history(self) -> bool:
        """Whether this release records."""
        return hasattr(getattr(self.module, "memory", None), "_record_memory_history")

    @property
    def _recorder(self) -> Callable[..., Any]:
        record: Callable[..., Any] = self.module.memory._record_memory_history
        return record

    def observe(self, observer: Observer) -> None:
        """Have `observer` called at every OOM.

        Raises:
            AttributeError: this build has no such hook; torch 2.15 has none.
        """
        self.torch._C._xpu_attach_out_of_memory_observer(observer)

    def snapshot(self) -> dict[str, Any]:
        """Everything torch knows; nothing where it keeps no history."""
        found: dict[str, Any] = self.module.memory._snapshot() if self.keeps_history() else _empty()
        return found


class MtiaBackend(OtherBackend):
    """Meta's accelerators: a history by functions of their own, without the arguments of CUDA's."""

    device_type = "mtia"
    label = "MTIA"

    def keeps_history(self) -> bool:
        """Whether this release records."""
        return hasattr(self.module, "record_memory_history") and hasattr(self.module, "snapshot")

    def start_history(self, options: Options) -> None:
        """Begin to record; `torch.mtia` takes no context and calls C++ stacks ``cpp``."""
        stacks = "python" if options.stacks == "python" else "cpp"
        self.module.record_memory_history(options.history, stacks, options.max_entries)

    def stop_history(self) -> None:
        """End the recording."""
        self.module.record_memory_history(None)

    def asked(self, options: Options) -> list[str]:
        """Nothing beyond stacks can be asked for."""
        del options
        return []

    def ask_for_more(self, options: Options) -> bool:
        """Nothing more can be asked for."""
        del options
        return False

    def observe(self, observer: Observer) -> None:
        """Have `observer` called at every OOM."""
        self.module.attach_out_of_memory_observer(observer)

    def snapshot(self) -> dict[str, Any]:
        """Everything torch knows."""
        found: dict[str, Any] = self.module.snapshot() if self.keeps_history() else _empty()
        return found


class MpsBackend(OtherBackend):
    """Apple's GPUs: three figures and no history; memory is the machine's."""

    device_type = "mps"
    label = "MPS"

    def is_there(self) -> bool:
        """Whether the machine has such a GPU."""
        return bool(quietly(lambda: self.torch.backends.mps.is_available(), False))

    def keeps_history(self) -> bool:
        """It keeps none."""
        return False

    def is_up(self) -> bool:
        """It needs no initialisation."""
        return True

    def when_up(self, callback: Callable[[], None]) -> None:
        """At once."""
        callback()

    def snapshot(self) -> dict[str, Any]:
        """It has none."""
        return _empty()

    def devices_in_use(self) -> list[int]:
        """There is one."""
        return [0]

    def current_device(self) -> int:
        """There is one."""
        return 0

    def levels(self, device: int) -> Levels:
        """What there is now; torch keeps no peak on MPS, and counts no retries."""
        stats = self.memory_stats(device)
        return Levels(stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"])

    def memory_stats(self, device: int) -> dict[str, int]:
        """What tensors take and what Metal's driver holds, by the names that CUDA's counters have."""
        del device
        return {
            "allocated_bytes.all.current": int(self.module.current_allocated_memory()),
            "reserved_bytes.all.current": int(self.module.driver_allocated_memory()),
        }

    def memory_info(self, device: int) -> tuple[int, int]:
        """What is left of the recommended size, and that size (torch 2.5+)."""
        del device
        total = int(self.module.recommended_max_memory())
        return max(total - int(self.module.driver_allocated_memory()), 0), total

    def device_name(self, device: int) -> tuple[str, str | None]:
        """Torch knows no name of it."""
        del device
        return "Apple GPU", None

    def allocator(self) -> dict[str, Any]:
        """The share of the recommended size at which it refuses."""
        return {"backend": "mps", "conf": os.environ.get("PYTORCH_MPS_HIGH_WATERMARK_RATIO")}


def _empty() -> dict[str, Any]:
    return {"segments": [], "device_traces": []}


def instead_of_cuda(torch: Any) -> Backend | None:
    """The backend of a device that is there where this build of torch has no CUDA; None where none is."""
    if torch.version.cuda is not None or getattr(torch.version, "hip", None) is not None:
        return None
    kinds = (XpuBackend, MtiaBackend, MpsBackend)
    return next((found for kind in kinds if (found := kind(torch)).is_there()), None)
