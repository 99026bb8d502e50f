"""Whose code a frame is: told from its file name alone, the same for every question that asks.

File names come from any machine: Windows, conda, pyenv, notebooks, torch built from source, other makers' backends.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache


class FrameKind(IntEnum):
    """Whose code a frame runs."""

    CPP = 0
    """C++, C or CUDA, or a symbol that was never resolved to a file."""
    PLUMBING = 1
    """The interpreter's own, and code that a library made out of text."""
    STANDARD = 2
    """Python's standard library."""
    TORCH = 3
    """torch, its backends, triton, and what torch.compile writes."""
    OOMSCOPE = 4
    """The recorder."""
    LIBRARY = 5
    """Installed beside torch, or downloaded by a library: code that the reader has not written."""
    OWN = 6
    """The reader's own."""


_CPP = re.compile(
    r"\A(?:\?\?|<unknown.*)?\Z"
    r"|\.(?:c|cc|cpp|cxx|c\+\+|cu|cuh|h|hh|hpp|hxx|inl|ipp|tcc|hip|m|mm|s|asm|pyx|o|a|so(?:\.\d+)*|dll|dylib|pyd)(?::\d+)?\Z"
    r"|(?:^|/)python[\d.]*\Z",  # the interpreter as an executable, where its symbols are not known
    re.IGNORECASE,
)
# Code that typing, attrs and the like compile from a text; what is typed by hand (<stdin>, a notebook's cell) is not.
_PLUMBING = re.compile(r"\A<(?:frozen |string>|attrs generated|__array_function__|decorator-gen|makefun-gen|@beartype)")
_PACKAGES = re.compile(r".*(?:site|dist)-packages/(.+)", re.DOTALL | re.IGNORECASE)
_TORCH_PACKAGES = re.compile(r"(?:torch|functorch|torch_npu|torch_musa|torch_mlu|triton)/")
_TORCH_SOURCE = re.compile(
    # Built from source it lies anywhere; these folders and files are its own.
    r"(?:.*/)?(torch/(?:_\w+/|nn/(?:attention|intrinsic|modules|parallel|quantized|utils|functional\.py|parameter\.py"
    r"|init\.py)|optim/|autograd/|cuda/|fx/|jit/|utils/(?:data|checkpoint\.py|hooks\.py|_)|distributed/|distributions/"
    r"|amp/|ao/|backends/|export/|func/|nested/|profiler/|sparse/|testing/|xpu/|mtia/|accelerator/|csrc/|_\w+\.py"
    r"|functional\.py|overrides\.py|serialization\.py|storage\.py|random\.py).*"
    r"|torch_npu/(?:npu|utils|optim|contrib|distributed|dynamo|_\w+)/.*"
    r"|triton/(?:runtime|compiler|language|backends)/.*)\Z",
    re.DOTALL,
)
_TORCH_WRITES = re.compile(
    # Wherever inductor's cache lies, its files are named by a hash.
    r"/torchinductor_[^/]*/|/[a-z2-7]{2}/c[a-z2-7]{50,}\.py\Z|\A<eval_with_key>|\A<torch_package"
    # torch.fx, where it registers what its lines were made from (torch 2.10+).
    r"|(?:\A|/)fx_generated_[^/]*\.py\Z"
)
_DOWNLOADED = re.compile(r"/torch/hub/[^/]+_[^/]+/|/transformers_modules/|/modules/datasets_modules/")
# What torch_geometric writes for each kind of message passing, anew in every process, beside other temporary files.
_MESSAGE_PASSING = re.compile(r"(?:.*/)?([^/]+_(?:propagate|edge_updater))_[a-z0-9_]{8}(\.py)\Z", re.DOTALL)
_STANDARD = re.compile(
    r".*?(?:^|/)lib(?:64)?/((?:python|pypy)3[^/]*/(?!.*(?:site|dist)-packages/).*)\Z"
    # Windows has no folder for the version below lib; the one above it is Python's own, or conda's.
    r"|.*?(?:^|/)(?:python-?3[\d.]*|cpython-3[^/]*|python/3[^/]*/x\w+|pyenv-win/versions/3[^/]*"
    r"|(?:ana|mini|micro)(?:conda|forge|mamba)\d*(?:/envs/[^/]+)?)/(lib/(?!site-packages/|python3).*)\Z"
    r"|.*/(python3\d+\.zip/.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_OOMSCOPE = re.compile(r"(?:^|/)oomscope/(?:recording/|commands/|__main__\.py)")


@lru_cache(maxsize=1 << 16)
def frame_kind(filename: str) -> FrameKind:
    """Whose code the file `filename` holds, as a frame of any machine names it."""
    path = slashes(filename)
    if _CPP.search(path):
        return FrameKind.CPP
    if _PLUMBING.match(path):
        return FrameKind.PLUMBING
    if _OOMSCOPE.search(path):
        return FrameKind.OOMSCOPE
    installed = _PACKAGES.match(path)
    if installed:
        return FrameKind.TORCH if _TORCH_PACKAGES.match(installed[1]) else FrameKind.LIBRARY
    if _DOWNLOADED.search(path) or _MESSAGE_PASSING.match(path):
        return FrameKind.LIBRARY
    if _TORCH_SOURCE.match(path) or _TORCH_WRITES.search(path):
        return FrameKind.TORCH
    return FrameKind.STANDARD if _STANDARD.match(path) else FrameKind.OWN


@lru_cache(maxsize=1 << 16)
def package_path(filename: str) -> str | None:
    """A library's file from the name of its package on, such as ``torch/nn/modules/linear.py``; None for others.

    For torch built from source as well; for what is only downloaded, the whole of it is not known and it is None. What
    a library writes anew in every process goes without the part of its name that chance has chosen.
    """
    path = slashes(filename)
    if (written := _MESSAGE_PASSING.match(path)) is not None:
        return f"{written[1]}{written[2]}"
    match = _PACKAGES.match(path) or (_TORCH_SOURCE.match(path) if frame_kind(filename) is FrameKind.TORCH else None)
    return match[1] if match else None


def standard_path(filename: str) -> str | None:
    """A file of the standard library from its version's folder on: ``python3.11/threading.py``; None for others."""
    match = _STANDARD.match(slashes(filename)) if frame_kind(filename) is FrameKind.STANDARD else None
    return next(group for group in match.groups() if group) if match else None


def slashes(filename: str) -> str:
    """`filename` with the separators of Linux."""
    return filename.replace("\\", "/")
