"""Telling an OOM of this process's GPU from everything else that is raised."""

from __future__ import annotations

import re

from oomscope.recording.backend import Backend

# Messages, because TorchScript, cuBLAS, NCCL and driver failures come as plain RuntimeErrors.
_FULL = re.compile(
    r"(CUDA|HIP|XPU|MTIA) out of memory|MPS backend out of memory"
    r"|(CUDA|HIP) (driver )?error: out of memory"
    r"|(CUBLAS|HIPBLAS)_STATUS_ALLOC_FAILED"
    r"|CUDA_ERROR_OUT_OF_MEMORY"
    r"|(Cuda|CUDA|HIP) failure.{0,8}out of memory"
)
# gloo raises plain RuntimeErrors: "[…/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:41283"
_PEER = re.compile(r"gloo.{0,200}(Connection closed by peer|Connection reset by peer|Broken pipe|Timed out)", re.DOTALL)
_WORKER = re.compile(r"Caught \w+ in DataLoader worker process \d+")


def is_oom(error: BaseException, backend: Backend) -> bool:
    """Whether the GPU was full, here or in a worker whose error was passed on."""
    if not isinstance(error, Exception):
        return False
    return backend.is_oom(error) or (isinstance(error, RuntimeError) and _FULL.search(_text(error)) is not None)


def oom_behind(error: BaseException, backend: Backend) -> BaseException | None:
    """The OOM that `error` is, or that it was raised from or while handling; None where there is none."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        if is_oom(one, backend):
            return one
        seen.add(id(one))
        one = one.__cause__ or one.__context__
    return None


def is_of_peers(error: BaseException, backend: Backend) -> bool:
    """Whether a collective failed, as it does where another rank is gone."""
    return backend.is_distributed(error) or (isinstance(error, RuntimeError) and _PEER.search(_text(error)) is not None)


def is_from_allocator(error: BaseException) -> bool:
    """Whether PyTorch's allocator raised it and so told its observers, which a driver's or library's OOM does not."""
    return "out of memory. Tried to allocate" in _text(error)


def worker_of(error: BaseException) -> str | None:
    """``DataLoader worker process 3`` where that raised the error; this process's memory then does not explain it."""
    found = _WORKER.search(_text(error))
    return found[0].partition(" in ")[2] if found else None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""
