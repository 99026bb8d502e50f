"""Drivers: what the live bytes are, by name. A driver is one file, and one entry in `oomscope.wording.drivers`.

Each module has:

- `SLUG`;
- `CATEGORIES`: the categories that its blocks may be of, so that a driver never contradicts the table of categories;
- `BECOMES`: the category that its blocks are counted in, where the driver knows better; None: their own;
- ``find(live)``: which live blocks it names;
- `EVIDENCE`: what tells it, and `LOOKS_LIKE`: what looks like it and is not, as codes for the documentation.

Every live block has one driver: the last in the order below that names it.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from oomscope.analysis.labels.drivers import (
    accumulated_tensors,
    activations,
    attention_scores,
    cuda_graphs,
    duplicate_model,
    gradients,
    kv_cache,
    logits,
    optimizer_state,
    optimizer_temporaries,
    parameters,
    retained_graph,
    unknown,
    workspace,
)
from oomscope.analysis.labels.drivers.driver import DriverModule
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.analysis.labels.records import Driver
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.records import CATEGORIES
from oomscope.analysis.study import DeviceStudy
from oomscope.model import BoolArray, IntArray, UInt8Array
from oomscope.model.ordering import among, ascending

_ALL: tuple[DriverModule, ...] = (
    unknown, activations, parameters, gradients, optimizer_state, workspace, optimizer_temporaries, attention_scores,
    logits, duplicate_model, cuda_graphs, retained_graph, accumulated_tensors, kv_cache,
)  # fmt: skip
"""Each names some of what those before it have named in a more general way."""

DRIVER_MODULES = MappingProxyType({driver.SLUG: driver for driver in _ALL})

LEAST_FRAMED = 0.25
"""Of a driver's bytes; with fewer from known lines, its site is the code without frames. A quarter is still more than
any other line has."""


def find_drivers(study: DeviceStudy, at_entry: int, growth: tuple[Growth, ...] = ()) -> tuple[Driver, ...]:
    """What the allocated bytes are once `at_entry` has happened; they sum to the allocated curve there.

    Args:
        study: of the device.
        at_entry: the instant that it is about.
        growth: what grows until then; its sites are named by the way in which they grow.
    """
    live, number = _named(study, at_entry, growth)
    found = [_driver(live, number == one, _ALL[one]) for one in ascending(number).tolist()]
    return tuple(sorted(found, key=lambda driver: -driver.bytes))


def drivers_of_live(study: DeviceStudy, at_entry: int, growth: tuple[Growth, ...] = ()) -> tuple[IntArray, list[str]]:
    """Which blocks are live once `at_entry` has happened, int64[n], rows of the lifetimes; and the driver of each."""
    live, number = _named(study, at_entry, growth)
    return live.rows, [_ALL[one].SLUG for one in number.tolist()]


def categories_at(study: DeviceStudy, at_entry: int, growth: tuple[Growth, ...] = ()) -> UInt8Array:
    """The category of every allocation, as the drivers of one instant see it.

    The blocks of a driver, and all others of their stacks that are of the same category, are counted where the driver
    puts them; so a table of categories and one of drivers never tell two stories of the same bytes.

    Args:
        study: of the device.
        at_entry: the instant that it is about.
        growth: what grows until then.

    Returns:
        uint8[lifetimes], indices into `CATEGORIES`.
    """
    return study.once(("categories", at_entry), lambda: _categories_at(study, at_entry, growth))


def _categories_at(study: DeviceStudy, at_entry: int, growth: tuple[Growth, ...]) -> UInt8Array:
    live, number = _named(study, at_entry, growth)
    category: UInt8Array = study.categories.copy()
    stack = study.history.lifetimes.stack
    for at, driver in enumerate(_ALL):
        if driver.BECOMES is None or not (mine := number == at).any():
            continue
        category[live.rows[mine]] = driver.BECOMES
        own = live.stack[mine & (live.stack >= 0)]
        alike = among(stack, own[~among(own, live.stack[~mine])]) & np.isin(study.categories, driver.CATEGORIES)
        category[alike] = driver.BECOMES
    return category


def _named(study: DeviceStudy, at_entry: int, growth: tuple[Growth, ...]) -> tuple[LiveBlocks, IntArray]:
    """The live blocks, and for each the number of its driver; found once an instant."""
    return study.once(("drivers", at_entry, bool(growth)), lambda: _name(study, at_entry, growth))


def _name(study: DeviceStudy, at_entry: int, growth: tuple[Growth, ...]) -> tuple[LiveBlocks, IntArray]:
    live = LiveBlocks(study, at_entry, growth)
    number = np.zeros(len(live), np.int64)
    for at, driver in enumerate(_ALL):
        number[driver.find(live) & live.of(*driver.CATEGORIES)] = at
    return live, number


def _driver(live: LiveBlocks, mine: BoolArray, module: DriverModule) -> Driver:
    """One driver, with the site that holds most of its bytes (None where next to nothing has frames)."""
    size = live.study.history.size[live.rows[mine]]
    values, where = np.unique(live.site[mine], return_inverse=True)
    held = np.bincount(where, weights=size)
    if held[values >= 0].sum() >= LEAST_FRAMED * held.sum():
        held[values < 0] = 0
    category = live.category[mine] if module.BECOMES is None else np.full(len(size), module.BECOMES)
    total = np.bincount(category, weights=size, minlength=len(CATEGORIES)).astype(np.int64)
    return Driver(
        slug=module.SLUG,
        bytes=int(size.sum()),
        site=live.study.sites.location(int(values[np.argmax(held)])),
        categories={name: count for name, count in zip(CATEGORIES, total.tolist(), strict=True) if count},
    )
