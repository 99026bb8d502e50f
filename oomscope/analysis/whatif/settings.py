"""The settings that are tried."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.allocator.torch_releases import Release
from oomscope.analysis.whatif.records import EXPANDABLE, RECORDED
from oomscope.errors import RequestError
from oomscope.frozen import frozen


class Emptying(Enum):
    """Where `torch.cuda.empty_cache` is called beyond what the program does itself."""

    NEVER = ""
    EACH_STEP = "empty_cache after each step"
    BEFORE_PEAK = "empty_cache before the peak step"


@frozen
class Setting:
    """One row to be computed.

    Attributes:
        text: its name, as it was given.
        config: the settings of the allocator.
        emptying: what is done besides.
        is_asked_for: whether somebody named it; then it is complete as it is written.
    """

    text: str
    config: AllocatorConfig
    emptying: Emptying = Emptying.NEVER
    is_asked_for: bool = False

    @property
    def is_recorded(self) -> bool:
        """Whether this is the recorded setting itself."""
        return self.text == RECORDED


def recorded(config: AllocatorConfig) -> Setting:
    """The setting under which the snapshot was recorded."""
    return Setting(RECORDED, config)


def parse(text: str, recorded: AllocatorConfig, release: Release) -> Setting:
    """A setting as written in ``PYTORCH_ALLOC_CONF``: what it does not name has torch's default.

    Args:
        text: the setting.
        recorded: what the snapshot was recorded under; what no setting changes is taken from it.
        release: which torch reads it.

    Raises:
        RequestError: torch would refuse it.
    """
    try:
        return Setting(text, AllocatorConfig.parse(text, recorded.backend, release), is_asked_for=True)
    except ValueError as error:
        raise RequestError(f"--setting {text}: {error}.") from None


_TRIED = (
    EXPANDABLE,
    "max_split_size_mb:128",
    "max_split_size_mb:256",
    "max_split_size_mb:512",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:8",
)
_TRIED_UNDER_A_CAP = ("garbage_collection_threshold:0.6", "garbage_collection_threshold:0.8")


def default_set(config: AllocatorConfig, limit: Limit) -> list[Setting]:
    """The settings worth trying: each changes one thing of the recorded ones, and is named after it.

    Args:
        config: the recorded settings.
        limit: garbage collection acts only under a cap.
    """
    texts: Sequence[str] = _TRIED + (_TRIED_UNDER_A_CAP if limit.cap is not None else ())
    if config.expandable_segments:
        texts = ("expandable_segments:False", *texts[1:])
    settings = beside(config, texts)
    settings += [Setting(emptying.value, config, emptying) for emptying in (Emptying.EACH_STEP, Emptying.BEFORE_PEAK)]
    return settings


def beside(config: AllocatorConfig, texts: Sequence[str]) -> list[Setting]:
    """Those of `texts` that change `config` and that torch takes beside it."""
    settings = []
    for text in texts:
        try:
            changed = AllocatorConfig.parse(text, base=config)
        except ValueError:
            # torch refuses it beside what is recorded, such as a split size below that of a large segment.
            continue
        if changed != config:
            settings.append(Setting(text, changed))
    return settings
