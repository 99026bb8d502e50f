"""All questions of the diagnosis, asked in order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomscope.analysis.labels.categories import categorize
from oomscope.analysis.labels.drivers import find_drivers
from oomscope.analysis.labels.phases import phase_of
from oomscope.analysis.passes.growth import find_growth
from oomscope.analysis.passes.steps import find_steps
from oomscope.analysis.records import CATEGORIES, PHASES, Driver, Growth, Steps
from oomscope.history import DeviceHistory
from oomscope.model import Action, Snapshot, UInt8Array


@dataclass(frozen=True)
class Diagnosis:
    snapshot: Snapshot
    history: DeviceHistory
    phases: UInt8Array
    steps: Steps
    categories: UInt8Array
    source: str

    @property
    def at(self) -> int:
        """The last OOM, else the end."""
        failed = self.history.trace.entries(Action.OOM)
        return int(failed[-1]) if len(failed) else self.history.entries - 1

    def category(self, address: int) -> str:
        return CATEGORIES[self.categories[self._live(address)]]

    def phase(self, address: int) -> str:
        return PHASES[self.phases[self._live(address)]]

    def _live(self, address: int) -> int:
        lifetimes = self.history.lifetimes
        return int(np.flatnonzero((lifetimes.address == address) & (lifetimes.gone >= self.history.entries))[0])

    def growth(self) -> tuple[Growth, ...]:
        return find_growth(self.snapshot, self.history, self.steps, self.phases, self.categories, self.at)

    def drivers(self) -> tuple[Driver, ...]:
        growth = self.growth()
        return find_drivers(self.snapshot, self.history, self.phases, self.categories, self.at, growth=growth)


def diagnose(snapshot: Snapshot, history: DeviceHistory) -> Diagnosis:
    phases = phase_of(snapshot, history)
    steps = find_steps(snapshot, history, phases)
    categories, source = categorize(snapshot, history, steps, phases)
    return Diagnosis(snapshot, history, phases, steps, categories, source)


def right_bytes(diagnosis: Diagnosis, labels: list[list]) -> tuple[int, int]:
    """Bytes of labelled blocks that have the right category, and of all of them."""
    lifetimes, size = diagnosis.history.lifetimes, diagnosis.history.size
    rows = np.flatnonzero(lifetimes.gone >= diagnosis.history.entries)
    rows = rows[np.argsort(lifetimes.address[rows])]
    labels = sorted(labels)
    at = np.searchsorted(lifetimes.address[rows], [label[0] for label in labels], side="right") - 1
    blocks, first = np.unique(rows[at], return_index=True)
    wanted = np.array([CATEGORIES.index(labels[index][2]) for index in first])
    return int(size[blocks][diagnosis.categories[blocks] == wanted].sum()), int(size[blocks].sum())
