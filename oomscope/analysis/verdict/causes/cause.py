"""What every cause has to answer."""

from __future__ import annotations

from typing import Protocol

from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.shortage import Shortage, Tested
from oomscope.model import Note


class Cause(Protocol):
    """A module of this package."""

    @property
    def SLUG(self) -> str:  # noqa: N802
        """Its name in `verdict.cause`."""
        ...

    @property
    def DECIDING(self) -> tuple[str, ...]:  # noqa: N802
        """The numbers that a reader needs to believe it."""
        ...

    @property
    def REMEDIES(self) -> tuple[str, ...]:  # noqa: N802
        """What helps, best first."""
        ...

    @property
    def LOOKS_LIKE(self) -> tuple[str, ...]:  # noqa: N802
        """What looks like it and is not."""
        ...

    def withheld(self, case: Shortage, /) -> int:
        """The bytes that it alone kept from the request."""
        ...

    def doubt(self, circumstances: Circumstances, tested: Tested, /) -> Note | None:
        """The first thing that speaks for another cause; None where nothing does."""
        ...

    def headline(self, circumstances: Circumstances, tested: Tested, /) -> tuple[Note, ...]:
        """What to say."""
        ...

    def holds(self, circumstances: Circumstances, tested: Tested, /) -> bool:
        """Whether the numbers of the headline bear it out."""
        ...
