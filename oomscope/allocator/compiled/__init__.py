"""The compiled core of replays: used where numba is installed (extra ``[fast]``) and there is enough to replay."""

from __future__ import annotations

import importlib
from types import ModuleType

WORTH = 1_000_000
"""Steps in one process from which on the compiled core is used: loading it takes as long as half of them."""


class Choice:
    """Whether replays are compiled: what this process has replayed so far, and what it found installed.

    Attributes:
        steps: taken so far.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._run: ModuleType | None = None
        self._is_known = False

    def of(self, steps: int) -> ModuleType | None:
        """`compiled.run`, where it is worth it for so many more steps; None where the plain model is to be used."""
        self.steps += steps
        return self.load() if self.steps >= WORTH else None

    def load(self) -> ModuleType | None:
        """`compiled.run`; None where numba is missing, or is there and does not work."""
        if not self._is_known:
            self._is_known = True
            try:
                found = importlib.import_module("oomscope.allocator.compiled.run")
                found.try_out()
                self._run = found
            except Exception:  # Whatever is wrong with a library that is optional, the plain model serves.
                self._run = None
        return self._run


CHOICE = Choice()
"""Of this process."""
