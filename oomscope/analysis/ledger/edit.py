"""What every remedy of the ledger has to answer."""

from __future__ import annotations

from typing import Protocol

from oomscope.analysis.ledger.draft import Draft
from oomscope.analysis.ledger.run import Run
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray
from oomscope.model.arrays import FloatArray


@frozen(eq=False)
class Edited:
    """A program that follows a remedy.

    Attributes:
        likely: the most likely program.
        others: programs that are possible as well; the range spans all.
        doubt: the share of what it saves by which the likely one may be off beside that.
        own: float64[requests], as what share of it the program itself has what was recorded, without copies; or None.
        given: the requests that go into what is made again, or None.
        again: int64[given], the moment from which that is.
        forward_alone: bool[requests], what no backward makes again, for there is none, or None.
        halves: whether it makes what is computed be in 16 bits.
        beside_halves: the most likely program where another remedy does that, if it is another one; else None.
    """

    likely: Draft
    others: tuple[Draft, ...] = ()
    doubt: float = 0.05
    own: FloatArray | None = None
    given: IntArray | None = None
    again: IntArray | None = None
    forward_alone: BoolArray | None = None
    halves: bool = False
    beside_halves: Draft | None = None


class Edit(Protocol):
    """A module that edits the trace."""

    @property
    def SLUG(self) -> str:  # noqa: N802
        """Its name, as ``--remedy`` takes it."""
        ...

    def edit(self, run: Run, value: int | None, /) -> Edited | None:
        """The edited program; None where the program follows the remedy already, or it cannot."""
        ...
