"""The places a person knows: locals of running functions, globals, class attributes, exceptions being handled."""

from __future__ import annotations

import functools
import gc
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, GeneratorType
from typing import Any

from oomscope.frozen import frozen
from oomscope.recording.census.carried import carried_names

_SUSPENDED = frozenset({GeneratorType, CoroutineType, AsyncGeneratorType})
_OPTIMIZED = 0x1  # CO_OPTIMIZED: the frame of a function, whose locals are not a dict of their own
_OWN = str(Path(__file__).resolve().parents[1]) + os.sep

# The order in which roots claim what they hold: what a reader wrote comes before what runs underneath.
USER_GLOBAL, USER_FRAME, LIBRARY_FRAME, LIBRARY_GLOBAL, CLASS, EXCEPTION, PASSED_ON = range(7)
_FRAMES = (USER_FRAME, LIBRARY_FRAME, PASSED_ON)
_MOST_FRAMES = 100_000  # more than any stack is deep
# What a library function only hands to the next one says nothing to a reader.
_PASSED_ON = frozenset({"args", "kwargs", "inputs", "self", "fn", "func", "forward_call"})


Place = tuple[str, int, str]  # file, line, function

# For the reader: what kind of place a root is.
_KINDS = {
    USER_GLOBAL: "global",
    LIBRARY_GLOBAL: "global",
    USER_FRAME: "local",
    LIBRARY_FRAME: "local",
    PASSED_ON: "local",
    CLASS: "class",
    EXCEPTION: "exception",
}


@frozen
class Root:
    """A named place: `names` maps the id of each object it refers to, to how the place calls it."""

    order: tuple[int, int]
    label: str
    names: Mapping[int, str]
    at: Place | None = None  # where the program is in it, if it runs
    carried: frozenset[str] = frozenset()  # names that outlive a pass of the loops in it

    @property
    def kind(self) -> str:
        """``global``, ``local``, ``class`` or ``exception``."""
        return _KINDS[self.order[0]]

    def outlives(self, other: Root) -> bool:
        """Whether this place may still be there when `other` is gone: not if it is a call made from there."""
        if self.order[0] not in _FRAMES or other.order[0] not in _FRAMES:
            return True
        return self.order[1] // _MOST_FRAMES != other.order[1] // _MOST_FRAMES or self.order[1] <= other.order[1]


@functools.lru_cache(maxsize=4096)
def is_library(filename: str) -> bool:
    """Whether a source file is torch's, the standard library's or installed, so not the reader's own."""
    from oomscope.model.frames import FrameKind, frame_kind  # not at start-up: it brings numpy

    return filename.startswith(_library_folders()) or frame_kind(filename) is not FrameKind.OWN


@functools.lru_cache(maxsize=4096)
def is_torchs(filename: str) -> bool:
    """Whether a source file is one of torch."""
    return filename.startswith(_library_folders()[1:])


@functools.lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    """Where this process has the standard library and torch; each with its separator, for it begins other names too."""
    torch_file = getattr(sys.modules.get("torch"), "__file__", None)
    folders = [sysconfig.get_paths()["stdlib"]]
    if torch_file:
        folders.append(str(Path(torch_file).parent))
    return tuple(folder + os.sep for folder in folders)


def is_own(filename: str) -> bool:
    """Whether a source file belongs to the recorder itself."""
    return filename.startswith(_OWN)


def function_name(frame: FrameType) -> str:
    """``train``, ``Block.forward``: the function as its author would call it."""
    code = frame.f_code
    return _qualified_name(code).rpartition("<locals>.")[2]


def _qualified_name(code: CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)  # Python 3.11


def thread_frames() -> list[list[FrameType]]:
    """Each thread's frames, outermost first; the main thread first. The recorder's own frames are left out."""
    main = threading.main_thread().ident
    found = []
    for _, innermost in sorted(sys._current_frames().items(), key=lambda item: item[0] != main):
        found.append(_stack(innermost))
        # This very frame may be in that variable: a cycle that would keep every local of the walk alive.
        del innermost
    return found


def raising_frames(error: BaseException) -> list[FrameType]:
    """The frames that `error` came through, outermost first: they ran when it was raised, whatever has ended since."""
    trace, frames = error.__traceback__, []
    while trace is not None:
        if not is_own(trace.tb_frame.f_code.co_filename):
            frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames


def stacks(error: BaseException | None) -> list[list[FrameType]]:
    """The frames of all threads, and those that `error` came through."""
    found = thread_frames()
    if error is not None:
        found.append(raising_frames(error))
    return found


def raised_at(error: BaseException | None) -> dict[int, int]:
    """By the id of each frame that `error` came through, the offset of the instruction that it was raised in."""
    trace, offsets = None if error is None else error.__traceback__, {}
    while trace is not None:
        offsets[id(trace.tb_frame)] = trace.tb_lasti
        trace = trace.tb_next
    return offsets


def _stack(frame: FrameType | None) -> list[FrameType]:
    stack = []
    while frame is not None:
        if not is_own(frame.f_code.co_filename):
            stack.append(frame)
        frame = frame.f_back
    return stack[::-1]


def local_variables(frame: FrameType) -> dict[str, Any]:
    """A copy of a frame's local variables that leaves nothing behind.

    Before Python 3.13 the first look at ``f_locals`` makes a dict which the frame keeps, and with it every object
    that was in a local: a tensor would outlive its ``del``. That dict is emptied, unless someone else holds it too.
    """
    variables = frame.f_locals
    copied = dict(variables)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & _OPTIMIZED and sys.getrefcount(variables) <= 3:
        variables.clear()
    return copied


def without_copies(objects: list[Any], stacks: list[list[FrameType]]) -> list[Any]:
    """`objects` without the dicts that an earlier look at ``f_locals`` has left with frames.

    They would be held here, so that they could not be told from dicts that the program holds, nor emptied. A suspended
    call refers to its frame once somebody has asked for that.
    """
    if sys.version_info >= (3, 13):
        return objects
    copies = set()
    frames = {id(frame): frame for stack in stacks for frame in stack}
    for item in objects:
        if type(item) in _SUSPENDED:
            frames |= {id(one): one for one in gc.get_referents(item) if type(one) is FrameType}
    for frame in (one for one in frames.values() if one.f_code.co_flags & _OPTIMIZED):
        variables = frame.f_locals
        if sys.getrefcount(variables) <= 4:  # the frame, `objects`, this variable, and the argument
            copies.add(id(variables))
            variables.clear()
    return [item for item in objects if id(item) not in copies]


def place_of(frame: FrameType) -> Place:
    """Where a call is, or was when it ended."""
    code = frame.f_code
    return code.co_filename, frame.f_lineno or code.co_firstlineno, code.co_name


def frame_roots(stacks: list[list[FrameType]]) -> Iterator[Root]:
    """The locals of every running function; module-level code is among the globals."""
    for thread, stack in enumerate(stacks):
        for depth, frame in enumerate(stack):
            code = frame.f_code
            if not code.co_flags & _OPTIMIZED:
                continue
            place, label, names = thread * _MOST_FRAMES + depth, function_name(frame), _names(local_variables(frame))
            at = place_of(frame)
            if not is_library(code.co_filename):
                yield Root((USER_FRAME, place), label, names, at, carried_names(code))
                continue
            passed = {key: name for key, name in names.items() if name in _PASSED_ON}
            own = {key: name for key, name in names.items() if key not in passed}
            yield Root((LIBRARY_FRAME, place), label, own, at)
            yield Root((PASSED_ON, place), label, passed, at)


def _names(variables: Mapping[str, Any]) -> dict[int, str]:
    names: dict[int, str] = {}
    for name, value in variables.items():
        names.setdefault(id(value), name)
    return names


Globals = tuple[str, dict[str, Any], int, FrameType | None]


def module_globals(stacks: list[list[FrameType]]) -> dict[int, Globals]:
    """For every imported module the id of its globals: (label, globals, order of the root, its frame if it runs)."""
    found: dict[int, Globals] = {}
    running = {
        id(frame.f_globals): frame for stack in stacks for frame in stack if not frame.f_code.co_flags & _OPTIMIZED
    }
    for name, module in list(sys.modules.items()):
        variables = getattr(module, "__dict__", None)
        if not isinstance(variables, dict):
            continue
        filename = variables.get("__file__")
        label = name
        if name == "__main__" and isinstance(filename, str):
            label = Path(filename).name
        own = isinstance(filename, str) and not is_library(filename) and not is_own(filename)
        kind = USER_GLOBAL if own or name == "__main__" else LIBRARY_GLOBAL
        found.setdefault(id(variables), (label, variables, kind, running.get(id(variables))))
    return found


def global_root(label: str, variables: dict[str, Any], kind: int, frame: FrameType | None) -> Root:
    """The globals of one module as a root."""
    if frame is None:
        return Root((kind, 0), label, _names(dict(variables)))
    return Root((kind, 0), label, _names(dict(variables)), place_of(frame), carried_names(frame.f_code))


def class_root(cls: type) -> Root:
    """The attributes of one class as a root."""
    return Root((CLASS, 0), cls.__qualname__, _names(dict(vars(cls))))


def exception_roots(error: BaseException | None) -> list[Root]:
    """The exceptions that threads are handling just now, and the one that is passing through the recorder."""
    errors = [error, sys.exc_info()[1], *_current_exceptions()]
    return [
        Root((EXCEPTION, position), f"the {type(item).__name__} being handled", {id(item): ""})
        for position, item in enumerate(errors)
        if item is not None
    ]


def _current_exceptions() -> list[BaseException | None]:
    current = getattr(sys, "_current_exceptions", None)
    if current is None:
        return []
    # A tuple (type, value, traceback) until Python 3.12, the exception itself since.
    return [item[1] if isinstance(item, tuple) else item for item in current().values()]
