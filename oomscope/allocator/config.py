"""The settings of the allocator that decide where blocks go.

Source: c10/core/AllocatorConfig.h and c10/cuda/CUDAAllocatorConfig.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oomscope.allocator.conf_string import Option, read_options, read_understood, tokenize
from oomscope.allocator.torch_releases import LATEST, Release
from oomscope.frozen import frozen
from oomscope.units import MIB

LARGE_SEGMENT_SIZE = 20 * MIB
"""The segment that serves requests between 1 and 10 MiB; kLargeBuffer before it became a setting (torch 2.11)."""

POWER2_INTERVALS = 16
"""roundup_power2_divisions has one number for each power of two from 1 MiB to 32 GiB."""

ASCEND_PADDING = 32
"""AddPadSize of torch_npu's NPUCachingAllocator.cpp: all but the newest devices read beyond the end of a tensor."""
ASCEND_ALIGNMENT = 16 << 10
"""kAlignRoundLarge of the same file, the default of base_addr_aligned_kb."""

NO_DIVISIONS = (0,) * POWER2_INTERVALS


@frozen
class AllocatorConfig:
    """What ``PYTORCH_ALLOC_CONF`` can set, as far as it decides about device memory. The defaults are torch's.

    Attributes:
        expandable_segments: whether segments grow by mapping pages into a reserved range of addresses.
        max_split_size: bytes; larger free blocks are not split. None: no bound.
        max_non_split_rounding: bytes by which an unsplit block may exceed a request of `max_split_size` or more;
            None: as `large_segment_size`.
        garbage_collection_threshold: the share of the cap above which old cached segments are freed; 0.0: off.
        roundup_power2_divisions: divisions of each power of two from 1 MiB on; 0: requests are rounded to 512 bytes.
        large_segment_size: bytes of a segment for requests between 1 and 10 MiB, and of a large expandable page.
        per_process_memory_fraction: the share of the device that this process may reserve (torch 2.10+).
        padding: bytes added to every request before it is rounded. No setting, but the backend's: 0 for CUDA, HIP and
            XPU, `ASCEND_PADDING` for most of Ascend.
        base_alignment: bytes; in expandable segments, blocks of 2 MiB and more begin at multiples of it. 0: wherever
            they fit. The backend's as well: `ASCEND_ALIGNMENT` for Ascend (base_addr_aligned_kb).
    """

    expandable_segments: bool = False
    max_split_size: int | None = None
    max_non_split_rounding: int | None = None
    garbage_collection_threshold: float = 0.0
    roundup_power2_divisions: tuple[int, ...] = NO_DIVISIONS
    large_segment_size: int = LARGE_SEGMENT_SIZE
    per_process_memory_fraction: float | None = None
    padding: int = 0
    base_alignment: int = 0

    @property
    def max_non_split_rounding_size(self) -> int:
        """Bytes, with torch's default filled in."""
        return self.large_segment_size if self.max_non_split_rounding is None else self.max_non_split_rounding

    @classmethod
    def parse(cls, text: str, base: AllocatorConfig | None = None, release: Release = LATEST) -> AllocatorConfig:
        """The settings that `text` stands for, written as in ``PYTORCH_ALLOC_CONF`` and checked as torch checks them.

        Args:
            text: such as ``expandable_segments:True,max_split_size_mb:512``; the empty text is torch's default.
            base: what holds for keys that `text` does not name; torch's defaults if None.
            release: which torch reads it.

        Raises:
            ValueError: torch would refuse `text`, or it chooses an allocator that this is no model of.
        """
        return _apply(cls() if base is None else base, read_options(tokenize(text), release))

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any] | None, *, expandable: bool | None = None) -> AllocatorConfig:
        """The settings that a snapshot was recorded under.

        Args:
            settings: torch's ``allocator_settings``; None where the file has none (torch before 2.3).
            expandable: whether the snapshot holds expandable segments; decides only where `settings` is silent.
        """
        settings = settings or {}
        config = _keys_of_conf_only(cls(), str(settings.get("PYTORCH_CUDA_ALLOC_CONF") or ""))
        max_split_size = int(_number(settings.get("max_split_size"), -1))
        return replace(
            config,
            expandable_segments=bool(settings.get("expandable_segments", bool(expandable))),
            max_split_size=None if max_split_size < 0 else max_split_size,
            garbage_collection_threshold=float(_number(settings.get("garbage_collection_threshold"), 0)),
            roundup_power2_divisions=_divisions(settings.get("roundup_power2_divisions")),
        )

    @property
    def backend(self) -> AllocatorConfig:
        """Its backend's defaults: what no setting changes, as here, all else as torch has it."""
        return AllocatorConfig(padding=self.padding, base_alignment=self.base_alignment)

    @property
    def text(self) -> str:
        """The settings as ``PYTORCH_ALLOC_CONF`` takes them; empty for torch's defaults."""
        parts = []
        if self.expandable_segments:
            parts.append("expandable_segments:True")
        if self.large_segment_size != LARGE_SEGMENT_SIZE:
            parts.append(f"large_segment_size_mb:{self.large_segment_size // MIB}")
        if self.max_split_size is not None:
            parts.append(f"max_split_size_mb:{self.max_split_size // MIB}")
        if self.max_non_split_rounding is not None:
            parts.append(f"max_non_split_rounding_mb:{self.max_non_split_rounding // MIB}")
        if self.garbage_collection_threshold:
            parts.append(f"garbage_collection_threshold:{self.garbage_collection_threshold:g}")
        if any(self.roundup_power2_divisions):
            parts.append(f"roundup_power2_divisions:{_divisions_text(self.roundup_power2_divisions)}")
        if self.per_process_memory_fraction is not None:
            parts.append(f"per_process_memory_fraction:{self.per_process_memory_fraction:g}")
        return ",".join(parts)

    def __str__(self) -> str:
        return self.text or "torch's defaults"


def _apply(config: AllocatorConfig, options: Mapping[Option, Any]) -> AllocatorConfig:
    """`config` with `options`, after the checks that compare one with another."""
    values = {option.field: value for option, value in options.items() if option.field}
    config = replace(config, **values)
    for option in options:
        # torch compares with the large segment size whatever the order of the two keys.
        if option.at_least_large_segment and values[option.field] < config.large_segment_size:
            least = config.large_segment_size // MIB
            raise ValueError(f"{option.key} must be at least {least}, the size of a large segment")
    return config


def _keys_of_conf_only(config: AllocatorConfig, conf: str) -> AllocatorConfig:
    """`config` with those keys of the recorded conf string that the snapshot does not repeat as numbers."""
    # What a process really ran with is no error of ours; the self-check tells if an unknown key mattered.
    options, _ = read_understood(tokenize(conf), LATEST)
    values = {option.field: value for option, value in options.items() if option.field in _CONF_ONLY}
    return replace(config, **values)


_CONF_ONLY = frozenset({"max_non_split_rounding", "large_segment_size", "per_process_memory_fraction"})


_BEYOND = 1 << 62


def _number(value: Any, default: int) -> int | float:
    """`value`, or what counts where a file holds something else in its place."""
    # Comparing is exact for integers of any size, which `math.isfinite` cannot take.
    return value if isinstance(value, (int, float)) and -_BEYOND < value < _BEYOND else default


_MOST_DIVISIONS = 1 << 30


def _divisions(value: Any) -> tuple[int, ...]:
    if not isinstance(value, Mapping):
        return NO_DIVISIONS
    counts = (int(_number(value.get(str(1 << interval)), 0)) for interval in range(POWER2_INTERVALS))
    # A file may hold anything; torch takes powers of two, and more than this divide nothing.
    return tuple(count if 0 <= count <= _MOST_DIVISIONS else 0 for count in counts)


def _divisions_text(divisions: tuple[int, ...]) -> str:
    if len(set(divisions)) == 1:
        return str(divisions[0])
    return "[" + ",".join(f"{1 << interval}:{count}" for interval, count in enumerate(divisions)) + "]"
