"""Which line of code stands for a stack.

A *site* is the innermost frame outside torch's own package, C++, the standard library and interpreter plumbing, so
that a library's model code counts. Its *caller* is the innermost frame that is outside any ``site-packages`` as well:
the reader's own code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from oomscope.analysis.records import Location
from oomscope.model import BoolArray, Frame, StackTable
from oomscope.model.arrays import StackArray

NO_LOCATION = -1

_CPP = re.compile(r"\.(?:cpp|cc|cxx|c|cu|cuh|h|hpp|inl|so(?:\.\d+)*|pyx)\Z|\A(?:\?\?)?\Z", re.IGNORECASE)
_TORCH = re.compile(
    r"(?:site|dist)-packages/(?:torch|functorch|torch_npu|triton)/"
    # torch built from source lies anywhere; these folders and files are its own.
    r"|(?:^|/)torch/(?:_\w+/|nn/(?:attention|intrinsic|modules|parallel|quantized|utils|functional\.py|parameter\.py)"
    r"|optim/|autograd/|cuda/|fx/|jit/|utils/(?:data|checkpoint\.py|_)|distributed/|distributions/|amp/|ao/|backends/"
    r"|export/|func/|nested/|profiler/|sparse/|testing/|xpu/|_\w+\.py|functional\.py|overrides\.py|serialization\.py"
    r"|storage\.py)"
    # What torch.compile writes is torch's, too; wherever its cache lies, files are named by a hash.
    r"|/torchinductor_[^/]*/|/[a-z2-7]{2}/c[a-z2-7]{50,}\.py\Z|\A<eval_with_key>|\A<torch_package"
)
_STANDARD = re.compile(
    r"\A<(?:frozen|string|attrs generated|__array_function__)"
    r"|(?:^|/)lib(?:64)?/python3[^/]*/(?!.*(?:site|dist)-packages/)"
    # Windows has no folder for the version below lib; the one above it is Python's own, or conda's.
    r"|(?:^|/)(?:python-?3[\d.]*|cpython-3[^/]*|python/3[^/]*/x\w+|pyenv-win/versions/3[^/]*"
    r"|(?:ana|mini|micro)(?:conda|forge|mamba)\d*(?:/envs/[^/]+)?)/lib/(?!site-packages/|python3)",
    re.IGNORECASE,
)
_OWN = re.compile(r"(?:^|/)oomscope/(?:recording/|commands/|__main__\.py)")
_PACKAGES = re.compile(r"(?:site|dist)-packages/")


def is_cpp(frame: Frame) -> bool:
    """Whether `frame` is C++, or a symbol that was never resolved."""
    return bool(_CPP.search(frame.filename))


def is_torch(frame: Frame) -> bool:
    """Whether `frame` is Python code of torch itself."""
    return bool(_TORCH.search(frame.filename.replace("\\", "/")))


def is_script(frame: Frame) -> bool:
    """Whether `frame` is Python code of the reader or of a library: not of torch, Python itself or oomscope."""
    path = frame.filename.replace("\\", "/")
    return not (_CPP.search(path) or _TORCH.search(path) or _STANDARD.search(path) or _OWN.search(path))


def _is_readers(frame: Frame) -> bool:
    return not _PACKAGES.search(frame.filename.replace("\\", "/"))


def is_readers_frame(frame: Frame) -> bool:
    """Whether `frame` is the reader's own code: no library's, no interpreter's, no C++."""
    return is_script(frame) and _is_readers(frame)


class SiteTable:
    """Site and caller of every stack of a snapshot.

    Attributes:
        site_of: int32[stacks], location numbers, `NO_LOCATION` where no frame qualifies.
        caller_of: int32[stacks], likewise.
    """

    def __init__(self, stacks: StackTable) -> None:
        self._stacks = stacks
        self._locations: list[Location] = []
        number: dict[Location, int] = {}
        location_of = np.empty(len(stacks.frames), np.int32)
        for index, frame in enumerate(stacks.frames):
            location = Location(frame.filename, frame.line, frame.name)
            location_of[index] = number.setdefault(location, len(number))
        self._locations = list(number)
        sites = _flags(map(is_script, stacks.frames), len(stacks.frames))
        readers = sites & _flags(map(_is_readers, stacks.frames), len(stacks.frames))
        self.site_of = self._innermost(sites, location_of)
        self.caller_of = self._innermost(readers, location_of)

    def _innermost(self, wanted: BoolArray, location_of: StackArray) -> StackArray:
        """For each stack, the location of its innermost wanted frame."""
        stacks = self._stacks
        if not len(stacks):
            return np.zeros(0, np.int32)
        hits = np.flatnonzero(wanted[stacks.members])
        at = np.searchsorted(hits, stacks.offsets[:-1])
        found = at < np.searchsorted(hits, stacks.offsets[1:])
        result = np.full(len(stacks), NO_LOCATION, np.int32)
        result[found] = location_of[stacks.members[hits[at[found]]]]
        return result

    def __len__(self) -> int:
        return len(self._locations)

    def location(self, number: int) -> Location | None:
        """The location with `number`; None for `NO_LOCATION`."""
        return None if number == NO_LOCATION else self._locations[number]

    def sites(self, stack: StackArray) -> StackArray:
        """The site number of each row of a `stack` column."""
        return _look_up(self.site_of, stack)

    def callers(self, stack: StackArray) -> StackArray:
        """The caller number of each row of a `stack` column."""
        return _look_up(self.caller_of, stack)

    @cached_property
    def has_cpp(self) -> bool:
        """Whether any stack was recorded with C++ frames (``stacks="all"``)."""
        used = np.unique(self._stacks.members) if len(self._stacks.members) else np.zeros(0, np.int32)
        return any(is_cpp(self._stacks.frames[frame]) for frame in used)


def _flags(values: Iterable[bool], count: int) -> BoolArray:
    return np.fromiter(values, np.bool_, count=count)


def _look_up(table: StackArray, stack: StackArray) -> StackArray:
    if not len(table):
        return np.full(len(stack), NO_LOCATION, np.int32)
    return np.where(stack >= 0, table[np.maximum(stack, 0)], NO_LOCATION).astype(np.int32)


def frame_text(frame: Frame) -> str:
    """A frame as one line: ``train.py:31 forward``."""
    return f"{frame.filename}:{frame.line} {frame.name}"


def stack_text(stacks: StackTable, stack: int) -> tuple[str, ...]:
    """A stack as lines, innermost first; C++ frames that were never resolved are left out."""
    return tuple(frame_text(frame) for frame in stacks[stack] if frame.filename not in ("", "??") or frame.line)
