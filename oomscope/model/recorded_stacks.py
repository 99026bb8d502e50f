"""What a recording tells of code: the stacks of threads, where autograd was, and lines of source.

`oomscope.model.recorded` says what holds for all its records.
"""

from __future__ import annotations

from oomscope.frozen import frozen
from oomscope.model.stacks import Frame


@frozen
class RecordedThread:
    """One thread's Python stack at the moment of the dump.

    Attributes:
        name: as `threading` calls it.
        frames: innermost first, without the recorder's own.
        failing: whether the request failed in this thread.
        main: whether it is the main thread.
    """

    name: str | None = None
    frames: tuple[Frame, ...] = ()
    failing: bool = False
    main: bool = False


@frozen
class RecordedGathering:
    """A loop underway that gathers for a backward which comes after it.

    Attributes:
        at: its function, and its first line.
        last: its last line.
        backward: the call of that backward, in the same function or in one that has called it.
    """

    at: Frame
    last: int
    backward: Frame | None = None

    def holds(self, file: str, line: int) -> bool:
        """Whether a line of `file` is within the loop."""
        return file == self.at.filename and self.at.line <= line <= self.last


@frozen
class RecordedStacks:
    """Python stacks at the moment of the dump.

    Attributes:
        failing: of the thread in which the request failed; empty in one of autograd's own.
        main: of the main thread, where that is another one.
        backward: of the thread that called ``backward``, where the request failed in one of autograd's own.
        gathering: the loops of the failing thread that gather for a backward, innermost first.
        threads: of every Python thread, the failing one first.
        threads_left_out: how many more threads there were.
    """

    failing: tuple[Frame, ...] = ()
    main: tuple[Frame, ...] = ()
    backward: tuple[Frame, ...] = ()
    gathering: tuple[RecordedGathering, ...] = ()
    threads: tuple[RecordedThread, ...] = ()
    threads_left_out: int = 0


@frozen
class RecordedAutograd:
    """The node of the autograd graph that backward was in when the request failed.

    Attributes:
        node: its type, such as ``MmBackward0``; None outside backward.
        gradients_of: names of the parameters whose gradients come straight out of it.
        forward: the stack that made it, which only anomaly mode keeps.
    """

    node: str | None = None
    gradients_of: tuple[str, ...] = ()
    forward: tuple[Frame, ...] = ()


@frozen
class RecordedSource:
    """A line of source with its neighbours.

    Attributes:
        filename, line: as frames have them; lines count from 1.
        first: the number of the first line of `text`.
        text: consecutive lines without their ends, `line` among them.
    """

    filename: str
    line: int
    first: int
    text: tuple[str, ...]
