"""This process: where it runs, which rank it is, and what of its environment bears on GPU memory."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Mapping
from typing import Any

# By name, never by pattern: an environment holds secrets.
_TELLING = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "GROUP_RANK",
    "HIP_VISIBLE_DEVICES",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NCCL_BUFFSIZE",
    "NCCL_MAX_NCHANNELS",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "RANK",
    "SLURM_JOB_ID",
    "SLURM_LOCALID",
    "SLURM_PROCID",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "WORLD_SIZE",
)
_RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_LOCAL_RANK = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
_WORLD_SIZE = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_SECRET = re.compile(r"token|secret|passw|credential|api[-_]?key|auth", re.IGNORECASE)


def _first_number(names: tuple[str, ...], environment: Mapping[str, str]) -> int | None:
    for name in names:
        if environment.get(name, "").strip().isdigit():
            return int(environment[name])
    return None


def rank() -> int | None:
    """This process's rank, by its launcher's variables or its process group; no collective is ever asked."""
    known = _first_number(_RANK, os.environ)
    return _rank_in_group() if known is None else known


def _rank_in_group() -> int | None:
    """Lightning, for one, starts its ranks without telling them by a variable."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        return int(distributed.get_rank()) if distributed.is_available() and distributed.is_initialized() else None
    except Exception:
        return None


def local_rank() -> int | None:
    """The rank on this machine."""
    return _first_number(_LOCAL_RANK, os.environ)


def world_size() -> int | None:
    """How many ranks there are."""
    return _first_number(_WORLD_SIZE, os.environ)


def host() -> str:
    """The machine's name."""
    return socket.gethostname() or "localhost"


def describe() -> dict[str, Any]:
    """The dump's ``process``."""
    return {
        "host": host(),
        "pid": os.getpid(),
        "argv": hide_secrets(sys.argv),
        "rank": rank(),
        "local_rank": local_rank(),
        "world_size": world_size(),
        "environment": {name: os.environ[name] for name in _TELLING if name in os.environ},
    }


def hide_secrets(argv: list[str]) -> list[str]:
    """The command line with the values of what looks like a password or a token left out."""
    shown, hide_next = [], False
    for word in argv:
        name, equals, _ = word.partition("=")
        if hide_next:
            shown.append("***")
            hide_next = False
        elif _SECRET.search(name) and (equals or word.startswith("-")):
            shown.append(f"{name}=***" if equals else word)
            hide_next = not equals
        else:
            shown.append(word)
    return shown
