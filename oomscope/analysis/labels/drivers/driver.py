"""What every driver has to answer."""

from __future__ import annotations

from typing import Protocol

from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.model import BoolArray


class DriverModule(Protocol):
    """A module of this package."""

    @property
    def SLUG(self) -> str:  # noqa: N802
        """Its name in `verdict.drivers`."""
        ...

    @property
    def CATEGORIES(self) -> tuple[int, ...]:  # noqa: N802
        """The categories that its blocks may be of."""
        ...

    @property
    def BECOMES(self) -> int | None:  # noqa: N802
        """The category that its blocks are counted in, where the driver knows better; None: their own."""
        ...

    @property
    def EVIDENCE(self) -> tuple[str, ...]:  # noqa: N802
        """What tells it, as codes for the documentation."""
        ...

    @property
    def LOOKS_LIKE(self) -> tuple[str, ...]:  # noqa: N802
        """What looks like it and is not, as codes for the documentation."""
        ...

    def find(self, live: LiveBlocks, /) -> BoolArray:
        """Which of the live blocks it names; those of other categories are left out in any case."""
        ...
