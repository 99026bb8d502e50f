"""What a recording tells of tensors, of who keeps them alive, and of the walk that found that.

`oomscope.model.recorded` says what holds for all its records.
"""

from __future__ import annotations

from oomscope.frozen import frozen
from oomscope.model.stacks import Frame


@frozen
class RecordedTensor:
    """A storage that Python could see.

    Attributes:
        device: CUDA index.
        address: where the storage begins.
        bytes: of the storage.
        dtype, shape: of one tensor on it; `shape` is None where several share it.
        category: as the report's categories; ``unknown`` where the recording could not tell.
        name: of a module's or an optimizer's own tensor.
        saved_for: the node of the autograd graph that saved it, such as ``ReluBackward0 (result)``.
        visible: bytes of it that the tensors show which code can reach, where that is not all; None: all, or unknown.
        unread: the variable that alone keeps it and that no running code reads again, as in `RecordedUnread`.
        holders: ways to it from what a person knows.
    """

    device: int | None
    address: int | None
    bytes: int | None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    category: str | None = None
    name: str | None = None
    saved_for: str | None = None
    visible: int | None = None
    unread: str | None = None
    holders: tuple[str, ...] = ()


@frozen
class RecordedHolder:
    """A Python object that keeps memory alive.

    Attributes:
        holder: the way to it from what a person knows, such as ``train: total_loss``.
        kind: what it is: see `oomscope.recording.census.kinds`.
        device: CUDA index.
        bytes: all that it reaches.
        retained: what would come free with it alone.
        tensors: how many storages it retains.
        nodes: how many nodes of the autograd graph it retains.
        count: how many objects are told by this row.
        path: ways to some of what it retains, largest first.
        length: the number of items of the collections in this row.
        maxlen: of a deque that drops its oldest items, or that a bounded `queue.Queue` fills.
        place: what the way to it begins with: ``global``, ``local``, ``class``, ``closure``, ``exception``,
            ``suspended`` (a generator or coroutine that will go on), ``deferred`` (a call that waits for its time) or
            ``cycle``.
        finished: whether the program has finished with what it keeps: calls that have ended, or a cycle that is
            garbage for certain. False where that is not so or not proven, None where it was not looked at.
        running: of a model's parameters, whether a call of it was underway; None where none of any model was, or that
            was not looked at.
        at: the innermost code on the way to it: a closure's function, a suspended or ended call, else the running
            function or module whose variable it is, each with the line that it is at.
        stores: where methods of its class fill it, where it is an attribute; empty where it is none or that is unknown.
    """

    holder: str | None = None
    kind: str | None = None
    device: int | None = None
    bytes: int | None = None
    retained: int | None = None
    tensors: int | None = None
    nodes: int | None = None
    count: int | None = None
    path: tuple[str, ...] = ()
    length: int | None = None
    maxlen: int | None = None
    place: str | None = None
    finished: bool | None = None
    running: bool | None = None
    at: Frame | None = None
    stores: tuple[Frame, ...] = ()


@frozen
class RecordedWalk:
    """How the walk for names and holders went.

    Attributes:
        seconds: how long it took.
        complete: whether it came to its end.
        objects, tensors, nodes: how many it saw: of Python's, on the device, of the autograd graph.
        notes: what it had to leave out, as text.
        left_out_tensors, left_out_bytes: the smallest storages, of which only the sum is told.
    """

    seconds: float | None = None
    complete: bool | None = None
    objects: int | None = None
    tensors: int | None = None
    nodes: int | None = None
    notes: tuple[str, ...] = ()
    left_out_tensors: int = 0
    left_out_bytes: int = 0
