"""The recordings of one round of programs, and what the ledger predicts of them against torch's own peaks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from oomscope.analysis.ledger import ledger_of, parse_remedy
from oomscope.analysis.ledger.records import RemedyRow
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.study import DeviceStudy, study_device
from oomscope.reading import load

FIXTURES = Path(__file__).parent / "fixtures"


@cache
def study(program: str) -> DeviceStudy:
    """The recorded run of `program`, read once."""
    return study_device(load(FIXTURES / f"{program}.pickle.xz"), 0)


@cache
def run(program: str) -> Run:
    """The same as the ledger sees it."""
    return Run(study(program))


@dataclass(frozen=True)
class Round:
    """Programs that were run together.

    Attributes:
        name: of the file with torch's own peaks, `name`_peaks.json.
    """

    name: str

    @cached_property
    def peaks(self) -> dict[str, Any]:
        """By program: bytes of each of its ``shapes``, and of what was switched ``on``."""
        found: dict[str, Any] = json.loads((FIXTURES / f"{self.name}_peaks.json").read_text())
        return found

    def switched_on(self, *, pairs: bool = False, settings: bool = False) -> list[tuple[str, str]]:
        """Program and remedy: the single ones, or those of two remedies, or of the allocator."""
        every = [(program, name) for program in self.peaks for name in self.peaks[program]["on"]]
        return [(program, name) for program, name in every if ("+" in name, ":" in name) == (pairs, settings)]

    def rows(self, program: str) -> dict[str, RemedyRow]:
        """The ledger's row of each single remedy that the program can follow."""
        return _rows(program, tuple(name for one, name in self.switched_on() if one == program))

    def error(self, program: str, name: str) -> float:
        """By what part of it the peak allocated was off."""
        return abs(self.rows(program)[name].peak_allocated.bytes / self.peaks[program]["on"][name]["allocated"] - 1)


@cache
def _rows(program: str, names: tuple[str, ...]) -> dict[str, RemedyRow]:
    found = {(row.slug, row.value): row for row in ledger_of(study(program), [parse_remedy(one) for one in names]).rows}
    return {name: found[parse_remedy(name)] for name in names if parse_remedy(name) in found}
