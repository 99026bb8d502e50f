"""All questions of the diagnosis, asked in order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomscope.analysis.labels.drivers import find_drivers
from oomscope.analysis.labels.records import Driver
from oomscope.analysis.passes.growth import find_growth
from oomscope.analysis.passes.records import Growth, Steps
from oomscope.analysis.records import CATEGORIES, PHASES
from oomscope.analysis.study import DeviceStudy, study_device
from oomscope.history import DeviceHistory
from oomscope.model import Action, Snapshot, UInt8Array


@dataclass(frozen=True)
class Diagnosis:
    study: DeviceStudy

    @property
    def snapshot(self) -> Snapshot:
        return self.study.snapshot

    @property
    def history(self) -> DeviceHistory:
        return self.study.history

    @property
    def steps(self) -> Steps:
        return self.study.steps

    @property
    def phases(self) -> UInt8Array:
        return self.study.phases

    @property
    def categories(self) -> UInt8Array:
        return self.study.categories

    @property
    def source(self) -> str:
        return self.study.categories_source

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
        return find_growth(self.study, self.at)

    def drivers(self) -> tuple[Driver, ...]:
        return find_drivers(self.study, self.at, self.growth())


def diagnose(snapshot: Snapshot, index: int = 0) -> Diagnosis:
    return Diagnosis(study_device(snapshot, index))


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
