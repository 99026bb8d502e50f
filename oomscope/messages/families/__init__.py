"""The wordings of all families, in the order in which a text is offered to them."""

from __future__ import annotations

from oomscope.messages.families import (
    driver,
    host,
    jax,
    libraries,
    nccl,
    on_chip,
    oom_killer,
    other,
    pinned,
    serving,
    tensorflow,
    torch_allocator,
    torch_async,
    torch_mps,
)
from oomscope.messages.families.wording import Wording

_FAMILIES = (
    serving, torch_mps, torch_async, nccl, torch_allocator, on_chip, jax, tensorflow, libraries, pinned, host,
    oom_killer, other, driver,
)  # fmt: skip

WORDINGS: tuple[Wording, ...] = (
    *(wording for family in _FAMILIES for wording in family.WORDINGS),
    driver.NEAR_CARD,
    other.UNKNOWN,
)
"""What two of them could read belongs to the first."""

UNKNOWN = other.UNKNOWN.slug

ANCHORS: tuple[bytes, ...] = tuple(dict.fromkeys(anchor for family in _FAMILIES for anchor in family.ANCHORS))
"""In lower case; every message holds one of them."""
