"""``--window``: a snapshot cut to a part of its trace, and the instants within it."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import click

from oomscope.errors import RequestError

if TYPE_CHECKING:
    from oomscope.model import Snapshot


def only(snapshot: Snapshot, window: str, device: int | None = None) -> Snapshot:
    """The part `window` of `snapshot`; entries are those of `device`, else of the device with the longest trace.

    Raises:
        BadParameter: there is no such part.
    """
    from oomscope.analysis.study import SnapshotStudy
    from oomscope.export.window import cut, windows

    study = SnapshotStudy(snapshot)
    try:
        parts = windows(study, window, device)
    except RequestError as error:
        raise click.BadParameter(str(error), click.get_current_context(), param_hint="--window") from None
    found = cut(study, parts)
    del study
    gc.collect()  # a study and its devices refer to each other, and would keep what is left out
    return found


def within(snapshot: Snapshot, at: str | int, device: int | None) -> tuple[str | int, int | None]:
    """The entry `at` of the whole recording as one of the window `snapshot`, with the device it is of.

    Raises:
        RequestError: it is not in the window.
    """
    if isinstance(at, str) or not snapshot.window:
        return at, device
    longest = max(snapshot.window, key=lambda part: part.entries)
    part = longest if device is None else snapshot.window_of(device) or longest
    if not part.first <= at <= part.last:
        what = f"entries {part.first:,} to {part.last:,} of device {part.device}"
        raise RequestError(f"Entry {at} is not in the window, which holds {what}.")
    return at - part.first, part.device
