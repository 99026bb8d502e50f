"""The workspaces of cuBLAS: one a handle and stream, made at a thread's first product and never given back."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import ACTIVATION, GRADIENT, INPUT, TEMPORARY, UNKNOWN, WORKSPACE
from oomscope.analysis.labels.lifetime_facts import LifetimeFacts
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.size_matching import first_of_size
from oomscope.analysis.labels.stack_roles import Mark, Role
from oomscope.model import BoolArray, UInt8Array
from oomscope.model.ordering import is_any

SIZES = np.array(
    [
        8_519_680,  # cuBLAS before Hopper, CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8
        33_554_432,  # cuBLAS on Hopper and later, :4096:8
        1_048_576,  # cuBLASLt, 1024 KiB
    ],
    np.int64,
)

MOST_HANDLES = 4
"""Workspaces of one size: a thread has a handle for each stream, and few programs multiply in more than two of each."""


def settle_workspaces(facts: LifetimeFacts, category: UInt8Array) -> None:
    """Put `WORKSPACE` into `category` for what has the size of one, lives where products are made, and stays.

    Args:
        facts: of the allocations.
        category: uint8[lifetimes], as found so far; changed.
    """
    sized = np.isin(facts.bytes, SIZES) & facts.lives
    candidates = sized & ((facts.phases == FORWARD) | (facts.phases == BACKWARD) | facts.from_engine)
    candidates &= ~facts.marked(Mark.LOSS)  # nothing there multiplies matrices
    candidates &= is_any(category, (ACTIVATION, UNKNOWN, TEMPORARY))
    rows = np.flatnonzero(candidates)
    engine = (facts.phases[rows] == BACKWARD).astype(np.int64)
    category[_outlives_gradients(facts, category)] = WORKSPACE
    older = facts.before & (facts.role == Role.UNFRAMED) & (category == UNKNOWN) & facts.lives
    category[older & (facts.bytes == SIZES[0])] = WORKSPACE  # no other tensor has this odd size
    category[_of_odd_size(facts, category) | facts.marked(Mark.WORKSPACE)] = WORKSPACE
    chosen = first_of_size(facts.bytes[rows], facts.lifetimes.stream[rows] * 2 + engine, facts.lifetimes.born[rows])
    category[rows[chosen]] = WORKSPACE


def _of_odd_size(facts: LifetimeFacts, category: UInt8Array) -> BoolArray:
    """Live blocks of a size that hardly any tensor has, whatever made them.

    Where more of that size live than there are handles, or some were given back, it is the size of a tensor.
    """
    odd = (facts.bytes == SIZES[0]) & ~facts.marked(Mark.LOSS)
    live = odd & facts.lives & is_any(category, (ACTIVATION, INPUT, TEMPORARY, UNKNOWN, WORKSPACE))
    is_tensor = np.any(odd & ~facts.lives) or np.count_nonzero(live) > MOST_HANDLES
    return np.zeros(len(facts), np.bool_) if is_tensor else live


def _outlives_gradients(facts: LifetimeFacts, category: UInt8Array) -> BoolArray:
    """Which blocks of a size that a parameter and a workspace share stayed while later gradients were dropped."""
    found = np.zeros(len(facts), np.bool_)
    gradient = (category == GRADIENT) & ~facts.before
    for size in SIZES.tolist():
        mine = np.flatnonzero(gradient & (facts.bytes == size) & (facts.phases == BACKWARD))
        stays = mine[facts.lives[mine]]
        dropped = facts.lifetimes.born[mine[~facts.lives[mine]]]
        if len(stays) and len(dropped):
            first = stays[np.argmin(facts.lifetimes.born[stays])]
            found[first] = facts.lifetimes.born[first] < dropped.min()
    return found
