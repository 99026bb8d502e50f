"""What is asked of torch: the one place that imports it, and only when a recording starts.

Every answer allows for versions that do not have it. Tests put their own `Backend` in place of this one.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import platform
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from oomscope.recording import extras
from oomscope.recording.nvml import Nvml
from oomscope.recording.options import Options
from oomscope.recording.pool_names import pool_rows

Observer = Callable[[int, int, int, int], None]


class Levels(NamedTuple):
    """Bytes of one device: now, and the most since the program last reset that; and how often it tried again."""

    allocated: int
    reserved: int
    peak_allocated: int | None = None
    peak_reserved: int | None = None
    retries: int | None = None


class Backend:
    """torch's CUDA memory: its history, its snapshot, its observer of OOMs, and its counters."""

    device_type = "cuda"

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.nvml: Nvml | None = None
        self.constants: dict[str, Any] | None = None
        self._started: dict[str, bool] = {}

    def why_never(self) -> str | None:
        """Why nothing can be recorded in this process, if that is known without waking CUDA."""
        torch = self.torch
        memory: Any = getattr(torch.cuda, "memory", None)
        if not hasattr(memory, "_record_memory_history"):
            return f"torch {torch.__version__} cannot record memory history; torch 2.1 or newer can"
        if "stacks" not in inspect.signature(memory._record_memory_history).parameters:
            return f"torch {torch.__version__} records memory history the old way; torch 2.1 or newer is needed"
        if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
            return f"torch {torch.__version__} is built without CUDA, and no other GPU was found"
        count = getattr(torch.cuda, "_device_count_nvml", None)
        if count is not None and torch.version.cuda is not None and quietly(count, -1) == 0:
            return "no CUDA device is visible, so there is no GPU memory to record"
        return None

    def why_not_now(self) -> str | None:
        """Why nothing can be recorded although CUDA is up."""
        return None

    def prepare(self) -> None:
        """CUDA is up: find out now what never changes, so that nothing of it takes time at an OOM."""
        if self.constants is None:
            self.nvml = Nvml()
            self.constants = {
                **self.versions(),
                "driver": self.nvml.driver(),
                "python": platform.python_version(),
                "platform": platform.platform(),
            }

    def is_up(self) -> bool:
        """Whether CUDA is initialised in this process."""
        return bool(self.torch.cuda.is_initialized())

    def when_up(self, callback: Callable[[], None]) -> None:
        """Call back once CUDA is initialised, in the thread that does it; at once where it is.

        Recording and observing would initialise CUDA themselves: too early for a job that forks or picks its device.
        """
        self.torch.cuda._lazy_call(callback)

    def is_history_on(self) -> bool:
        """Whether someone records already."""
        asked = getattr(self.torch._C, "_cuda_isHistoryEnabled", None)
        return bool(asked()) if asked is not None else False

    def start_history(self, options: Options) -> None:
        """Begin to record, on every device."""
        self._started = extras.arguments(self._recorder, options)
        self._recorder(
            options.history,
            context=options.context,
            stacks=options.stacks,
            max_entries=options.max_entries,
            **self._started,
        )

    def ask_for_more(self, options: Options) -> bool:
        """Ask torch for what was not wanted when the recording began, and is now; returns whether there was such."""
        wanted = extras.arguments(self._recorder, options)
        if wanted.keys() <= self._started.keys():
            return False
        self.start_history(options)  # keeps what is recorded: releases that take such arguments clear it only if told
        return True

    def stop_history(self) -> None:
        """End the recording; torch drops what it had."""
        # Pinned memory goes on being recorded unless torch is told that it is meant, too.
        pinned = {name: value for name, value in self._started.items() if name == "record_pinned_host_memory"}
        self._recorder(None, **pinned)

    @property
    def _recorder(self) -> Callable[..., Any]:
        record: Callable[..., Any] = self.torch.cuda.memory._record_memory_history
        return record

    def asked(self, options: Options) -> list[str]:
        """What was asked of torch beyond stacks, by its own names."""
        return extras.asked(self._started, options)

    def without_history(self) -> str:
        """What is said where the allocator keeps no history."""
        name = quietly(self.torch.cuda.get_allocator_backend, "other")
        return f"the {name} allocator keeps no history: a dump will have figures, names and holders, and no timeline"

    def keeps_history(self) -> bool:
        """Whether the allocator that is in use can record at all."""
        return bool(quietly(self.torch.cuda.get_allocator_backend, "native") == "native")

    def observe(self, observer: Observer) -> None:
        """Have `observer` called at every OOM, in the failing thread before it unwinds. It cannot be detached.

        Raises:
            AttributeError: this build has no such hook.
        """
        self.torch._C._cuda_attach_out_of_memory_observer(observer)

    def snapshot(self) -> dict[str, Any]:
        """Everything torch knows: segments, traces, settings."""
        if not self.keeps_history():
            return {"segments": [], "device_traces": []}
        with _without_loading_inductor(self.torch):
            found: dict[str, Any] = self.torch.cuda.memory._snapshot()
        return found

    def pinned_stats(self) -> dict[str, int]:
        """Torch's counters of pinned host memory (2.6+); empty where there are none."""
        asked = getattr(self.torch.cuda, "host_memory_stats", None)
        return {} if asked is None else dict(asked())

    def pools(self) -> list[dict[str, Any]]:
        """The program's own memory pools, with the way to each."""
        return pool_rows([self.torch.cuda])

    def segments(self) -> list[dict[str, Any]]:
        """The segments alone, without traces, where torch can leave them out."""
        snapshot = self.torch.cuda.memory_snapshot
        with _without_loading_inductor(self.torch):
            if "include_traces" in inspect.signature(snapshot).parameters:
                return list(snapshot(include_traces=False))
            return list(snapshot())

    def devices_in_use(self) -> list[int]:
        """The devices on which this process has reserved memory; asking others would make a context there."""
        if not self.is_up():
            return []
        return [index for index in range(self.torch.cuda.device_count()) if self.levels(index).reserved]

    def levels(self, device: int) -> Levels:
        """What a device has now. Costs some 20 µs, and resets nothing."""
        stats = self.torch._C._cuda_memoryStats(device)
        allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
        retries = stats.get("num_alloc_retries")
        return Levels(allocated["current"], reserved["current"], allocated["peak"], reserved["peak"], retries)

    def current_device(self) -> int:
        """The device of this thread."""
        return int(self.torch.cuda.current_device())

    def memory_stats(self, device: int) -> dict[str, int]:
        """Torch's counters under their own names."""
        return dict(self.torch.cuda.memory_stats(device))

    def memory_info(self, device: int) -> tuple[int, int]:
        """Free and total bytes of the device, for all processes together."""
        free, total = self.torch.cuda.mem_get_info(device)
        return int(free), int(total)

    def fraction(self, device: int) -> float | None:
        """The share of the device that this process may use, where torch can say it."""
        asked = getattr(self.torch.cuda, "get_per_process_memory_fraction", None)
        return None if asked is None else float(asked(device))

    def device_name(self, device: int) -> tuple[str, str | None]:
        """The device's name and its UUID as NVML writes it."""
        properties = self.torch.cuda.get_device_properties(device)
        uuid = getattr(properties, "uuid", None)
        return str(properties.name), None if uuid is None else f"GPU-{uuid}"

    def versions(self) -> dict[str, Any]:
        """Torch's version and that of the CUDA (or ROCm) it is built for."""
        version = self.torch.version
        return {"torch": str(self.torch.__version__), "cuda": version.cuda or getattr(version, "hip", None)}

    def allocator(self) -> dict[str, Any]:
        """The allocator's kind, and how the environment configures it."""
        names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
        conf = next((os.environ[name] for name in names if name in os.environ), None)
        return {"backend": quietly(self.torch.cuda.get_allocator_backend, None), "conf": conf}

    def is_oom(self, error: BaseException) -> bool:
        """Whether torch raised this because a device was full."""
        kinds = (getattr(self.torch, "OutOfMemoryError", None), getattr(self.torch.cuda, "OutOfMemoryError", None))
        return any(kind is not None and isinstance(error, kind) for kind in kinds)

    def is_distributed(self, error: BaseException) -> bool:
        """Whether torch.distributed raised this: a collective, its backend or its store."""
        kind = getattr(sys.modules.get("torch.distributed"), "DistError", None)
        return kind is not None and isinstance(error, kind)

    def after_optimizer_steps(self, callback: Callable[..., None]) -> Callable[[], None]:
        """Call back after each step of any optimizer; returns what ends that.

        Raises:
            AttributeError: this torch has no such hook.
        """
        register = importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook
        remove: Callable[[], None] = register(callback).remove
        return remove

    def is_compiling(self) -> bool:
        """Whether torch.compile is tracing this very code."""
        compiler = getattr(self.torch, "compiler", None)
        asked = getattr(compiler, "is_compiling", None)
        return bool(asked()) if asked is not None else False


@contextlib.contextmanager
def _without_loading_inductor(torch: Any) -> Iterator[None]:
    """Spare a snapshot the three or four seconds that importing torch._inductor takes.

    Where torch writes out Python frames it looks for ``torch._inductor.codecache``, to translate generated code, and
    the look alone imports it. Where it is not loaded there is no generated code.
    """
    if "torch._inductor" in sys.modules or "_inductor" in vars(torch):
        yield
        return
    stand_in = types.SimpleNamespace()
    torch._inductor = stand_in
    try:
        yield
    finally:
        if vars(torch).get("_inductor") is stand_in:
            del torch._inductor


def quietly(ask: Callable[[], Any], otherwise: Any) -> Any:
    """The answer; `otherwise` where torch has none."""
    try:
        return ask()
    except Exception:
        return otherwise


_backend: Backend | None = None
_instead: Callable[[Any], Backend | None] | None = None


def prefer(instead: Callable[[Any], Backend | None]) -> None:
    """Ask `instead` first which backend there is, for devices that are none of CUDA's."""
    global _instead
    _instead = instead


def current() -> Backend | None:
    """The backend of this process; None where torch is not installed."""
    global _backend
    if _backend is None:
        try:
            torch = importlib.import_module("torch")
        except ImportError:
            return None
        _backend = (_instead(torch) if _instead is not None else None) or Backend(torch)
    return _backend


def use(backend: Backend | None) -> None:
    """Put another backend in place; None goes back to torch."""
    global _backend
    _backend = backend
