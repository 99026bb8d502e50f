"""The wordings of all families, in the order in which a text is offered to them."""

from __future__ import annotations

from oomscope.messages.families import (
    device,
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
    unknown,
)
from oomscope.messages.families.wording import Wording

_FAMILIES = (
    serving, torch_mps, torch_async, nccl, torch_allocator, on_chip, jax, tensorflow, libraries, pinned, host,
    oom_killer, other, driver, device, unknown,
)  # fmt: skip

WORDINGS: tuple[Wording, ...] = (
    *(wording for family in _FAMILIES if family is not unknown for wording in family.WORDINGS),
    host.EXCEPTION,
    driver.NEAR_CARD,
    *unknown.WORDINGS,
)
"""What two of them could read belongs to the first."""

LAST_RESORT = (driver.NEAR_CARD.slug, unknown.SLUG)
"""What counts only where nothing else is said."""

ANCHORS: tuple[bytes, ...] = tuple(dict.fromkeys(anchor for family in _FAMILIES for anchor in family.ANCHORS))
"""In lower case; every message holds one of them."""
