"""Memory that no running code reads again, as a recording tells it."""

from __future__ import annotations

from oomscope.frozen import frozen
from oomscope.model.stacks import Frame


@frozen
class RecordedUnread:
    """A variable of running code that alone keeps memory and that the rest of that code does not read.

    Or the gradients that a module's parameters still have from before they were frozen.

    Attributes:
        holder: the variable, with the function or script it is in, such as ``train: checkpoint``; or ``gradients of
            encoder``.
        place: ``local``, of a running function; ``global``, of a running script; ``attribute``, of an object, that no
            code which may still run names; ``suspended``, of a generator that waits; ``frozen``, of such gradients;
            ``graph``, the autograd graph behind a tensor of which only code that records no gradients reads the values.
        device: CUDA index.
        bytes, tensors: of storages that nothing else keeps but `others`; each is told of one variable.
        reads: the parts of it that are read again, such as ``.best_loss``; what they lead to does not count in `bytes`.
        since: whether it was written ``before`` all loops that are underway, ``between`` two, or by a ``pass`` of the
            innermost; None where no loop is underway.
        loop: the first line of the outermost loop of its function that is underway and does not write it; None where
            there is none, or the recorder did not tell.
        cache: whether it is a function that `functools.lru_cache` lets remember what it has returned.
        others: some further variables of the kind that keep part of the same.
        at: where the function or script is; of an attribute, where it is stored.
    """

    holder: str | None = None
    place: str | None = None
    device: int | None = None
    bytes: int | None = None
    tensors: int | None = None
    reads: tuple[str, ...] = ()
    since: str | None = None
    loop: int | None = None
    cache: bool = False
    others: tuple[str, ...] = ()
    at: Frame | None = None
