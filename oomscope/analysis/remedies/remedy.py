"""What every remedy has to answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice


class Remedy(Protocol):
    """A module of this package that proposes something."""

    @property
    def SLUG(self) -> str:  # noqa: N802
        """Its name in `advice.slug`."""
        ...

    def propose(self, circumstances: Circumstances, /) -> Iterator[Advice]:
        """The advice, where it helps here; nothing where it does not, or the program follows it already."""
        ...
