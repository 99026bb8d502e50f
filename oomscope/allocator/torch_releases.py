"""What changed in the allocator from one release of torch to the next, as far as it decides where blocks go."""

from __future__ import annotations

import re
from collections.abc import Mapping

from oomscope.frozen import frozen
from oomscope.model import PoolId

Version = tuple[int, int]

INTRODUCED: Mapping[str, Version] = {
    "expandable_segments": (2, 1),
    "max_non_split_rounding": (2, 6),
    "per_process_memory_fraction": (2, 10),
    "large_segment_size": (2, 11),
}
"""The release that first knew a setting, for those younger than torch 2.0."""


@frozen
class Release:
    """The allocator of one release of torch.

    Attributes:
        version: (major, minor).
        user_pools_capture: whether `torch.cuda.use_mem_pool` counts as the capture of a CUDA graph, during which
            cached blocks cannot be released (up to 2.12).
        rest_overrides_last: whether the divisions for the rest (``>``) in a list of roundup_power2_divisions replace
            those of the last interval named as well (up to 2.8).
    """

    version: Version
    user_pools_capture: bool
    rest_overrides_last: bool

    def captures(self, pool: PoolId) -> bool:
        """Whether requests for `pool` come while a CUDA graph is captured, as far as its id tells."""
        graph, user = pool
        return graph != 0 or (user != 0 and self.user_pools_capture)

    def knows(self, setting: str) -> bool:
        """Whether the release has the setting, by its name in `AllocatorConfig`."""
        return self.version >= INTRODUCED.get(setting, (0, 0))


_REST_APART = (2, 9)
"""parseRoundUpPower2Divisions of c10/core/AllocatorConfig.cpp, which came with 2.9."""
_USER_POOLS_APART = (2, 13)
"""c10/cuda/CUDACachingAllocator.cpp: up to 2.12 one list of captures held pools in use as well."""


def _release(version: Version) -> Release:
    return Release(version, user_pools_capture=version < _USER_POOLS_APART, rest_overrides_last=version < _REST_APART)


LATEST = _release((2, 13))
"""The newest release whose rules were read. Headers of 2.14 and 2.15 bring no rule of where blocks go but two, which
are not modelled: a size for the reserve of expandable segments, and blocks at chosen addresses (both 2.15)."""

_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})")


def version_of(text: str | None) -> tuple[int, int] | None:
    """The release that `text` begins with, such as ``2.11.0+cu130``; None where it does not begin with one."""
    match = _VERSION.match(text or "")
    return None if match is None else (int(match[1]), int(match[2]))


def release_of(schema: str) -> Release:
    """The oldest release that writes snapshots of `schema` (such as ``2.10-2.11``); the latest where unknown."""
    version = version_of(schema)
    return LATEST if version is None else _release(version)


def possible_releases(recorded: str | None, schema: str) -> tuple[Release, ...]:
    """The releases that may have written a snapshot, as far as their rules differ; the likeliest first.

    Args:
        recorded: torch's version as the recording tells it; None where it does not.
        schema: which releases write the layout, such as ``2.12-2.13``.
    """
    version = version_of(recorded)
    if version is not None:
        return (_release(version),)
    oldest = release_of(schema)
    _, _, last = schema.partition("-")
    newest = release_of(last) if version_of(last) else oldest
    same = (newest.user_pools_capture, newest.rest_overrides_last) == (
        oldest.user_pools_capture,
        oldest.rest_overrides_last,
    )
    return (oldest,) if same else (oldest, newest)
