"""Settings under which the recorded program goes as it was recorded, which needs no replay to tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.allocator.replay import Replay
from oomscope.analysis.whatif.preparation import Subject
from oomscope.model import Action


def replay_as_recorded(subject: Subject, config: AllocatorConfig, limit: Limit) -> Replay | None:
    """The replay under `config`, where it is the recorded one; None where it may be another.

    A bound above which no block is split decides nothing where no segment, and so no block and no request, reaches it,
    and no memory was refused.
    """
    recorded = subject.recorded
    bound = config.max_split_size
    same = replace(config, max_split_size=subject.config.max_split_size) == subject.config
    if bound is None or not same or subject.config.max_split_size is not None or recorded.limit != limit:
        return None
    if config.expandable_segments or not subject.complete or recorded.refused:
        return None
    largest = max((size for action, _, size in recorded.segment_events if action is Action.SEGMENT_ALLOC), default=0)
    most_asked = int(np.max(subject.replayer.program.size, initial=0))
    return replace(recorded, config=config) if max(largest, most_asked) < bound else None
