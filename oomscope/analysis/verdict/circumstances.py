"""What the judgement of an OOM needs to know of its device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oomscope.allocator import AllocatorConfig
from oomscope.analysis.whatif.records import WhatIf


@dataclass(frozen=True, slots=True)
class Subject:
    """A device at the instant of an OOM, as far as the snapshot knows it.

    Attributes:
        device: CUDA index.
        config: the recorded settings.
        categories: live bytes by category.
        phases: live bytes by phase.
        total: bytes of the card; None unknown, as for the next two.
        cap: the process's share of it.
        outside: bytes of the card held by others.
        outside_names: who that is, largest first, as (name, bytes).
        uncertain_bytes: by how much block sizes may be off.
        names_known: whether the recording names tensors and their holders.
        varied_sizes: how many different sizes the site that failed has asked for.
        holder: the Python object that holds most, where the recording knows.
        in_forward: whether the request was made in a forward pass.
        whatif: the replays under other settings, None where not made.
    """

    device: int
    config: AllocatorConfig
    categories: Mapping[str, int]
    phases: Mapping[str, int]
    total: int | None = None
    cap: int | None = None
    outside: int | None = None
    outside_names: tuple[tuple[str, int], ...] = ()
    uncertain_bytes: int = 0
    names_known: bool = False
    varied_sizes: int = 0
    holder: str | None = None
    in_forward: bool = False
    whatif: WhatIf | None = None
