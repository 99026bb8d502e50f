"""The recordings of one round of programs, and what `plan` predicts of other shapes against torch's own peaks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

from oomscope.analysis.plan import plan_of
from oomscope.analysis.plan.records import Prediction
from oomscope.analysis.study import DeviceStudy, study_device
from oomscope.reading import load

FIXTURES = Path(__file__).parents[1] / "ledger" / "fixtures"


@cache
def study(file: str) -> DeviceStudy:
    """The recorded run in a fixture, read once."""
    return study_device(load(FIXTURES / f"{file}.pickle.xz"), 0)


@dataclass(frozen=True)
class Round:
    """Programs that were run together; `name`_peaks.json has torch's own peaks."""

    name: str

    @cached_property
    def _peaks(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((FIXTURES / f"{self.name}_peaks.json").read_text())
        return found

    def predicted(self, program: str, others: tuple[str, ...]) -> dict[str, Prediction]:
        """What the base and the recordings of `others` tell of every shape that is not among them."""
        return dict(_predicted(self, program, others))

    def truth(self, program: str, shape: str) -> dict[str, int]:
        """Torch's own peaks at a shape."""
        found: dict[str, int] = self._peaks[program]["shapes"][shape]
        return found

    def check(self, program: str, others: tuple[str, ...], allocated: float, reserved: float) -> None:
        """Assert that no peak is off by more than these parts of it, and that each lies in its range."""
        for name, row in self.predicted(program, others).items():
            truth = self._peaks[program]["shapes"][name]
            for told, true, rel in (
                (row.peak_allocated, truth["allocated"], allocated),
                (row.peak_reserved, truth["reserved"], reserved),
            ):
                assert told.bytes == pytest.approx(true, rel=rel), name
                assert told.low <= true <= told.high, name


@cache
def _predicted(of: Round, program: str, others: tuple[str, ...]) -> dict[str, Prediction]:
    studies = [(file, study(file)) for file in [program, *(f"{program}.{name}" for name in others)]]
    shapes = {
        name: {key: one[key] for key in one if key not in ("allocated", "reserved")}
        for name, one in of._peaks[program]["shapes"].items()
    }
    recorded = ("base", *others)
    at = [] if studies[0][1].snapshot.recorded.steps else [shapes[name] for name in recorded]
    wanted = {name: shape for name, shape in shapes.items() if name not in recorded}
    return dict(zip(wanted, plan_of(studies, at=at, wanted=list(wanted.values())).predictions, strict=True))
