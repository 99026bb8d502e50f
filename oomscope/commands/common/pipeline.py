"""From a file to findings, as every command that reports does it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from oomscope.commands.common.freed_memory import keep_freed_memory
from oomscope.commands.common.options import has_limits
from oomscope.commands.common.output import STDOUT
from oomscope.commands.common.progress import Progress

if TYPE_CHECKING:
    from oomscope.analysis import Findings
    from oomscope.model import Snapshot


_WARNED = ("reading.cut", "reading.from_pt_snap")
"""What is odd about a file so that every figure depends on it."""

QUICK_ENTRIES = 50_000
"""Traces of so many entries are replayed in a fraction of a second."""


def read(snapshot: str, progress: Progress) -> Snapshot:
    """Load `snapshot`, a path or ``-`` for stdin."""
    from oomscope.reading import load

    keep_freed_memory()
    source = sys.stdin.buffer if snapshot == STDOUT else snapshot
    loaded = load(source, progress=progress.read, limits=has_limits())
    for one in loaded.notes:
        if one.code in _WARNED:
            from oomscope.wording import say

            progress.warn(f"{snapshot}: {say(one)}")
    return loaded


def find(
    snapshot: str,
    *,
    at: str | int = "auto",
    device: int | None = None,
    window: str | None = None,
    whatif: bool | None = True,
    whatif_seconds: float | None = None,
    redact: bool = False,
    redact_key: Path | None = None,
    force: bool = False,
    no_source: bool = False,
) -> Findings:
    """Load, redact where asked for, and analyse.

    With a `window`, figures are those of this part of the trace; an entry `at` is one of the whole.
    With `whatif` None the verdict and the advice rest on a replay where that is quick, which is not shown itself.

    Raises:
        OomscopeError: the file cannot be read, or not answer what was asked.
    """
    with Progress() as progress:
        loaded = read(snapshot, progress)
        if window is not None:
            from oomscope.commands.common.windows import only, within

            loaded = only(loaded, window, device)
            at, device = within(loaded, at, device)
        if no_source:
            loaded = without_source(loaded)
        if redact:
            progress.stage("redacting")
            loaded = redacted(loaded, redact_key, force)
        from oomscope.analysis import analyze

        if whatif is None:
            quick = loaded.entries <= QUICK_ENTRIES
            findings = analyze(loaded, at=at, device=device, whatif=quick, whatif_seconds=0, progress=progress.tell)
            return replace(findings, whatif=())
        return analyze(
            loaded, at=at, device=device, whatif=whatif, whatif_seconds=whatif_seconds, progress=progress.tell
        )


def without_source(snapshot: Snapshot) -> Snapshot:
    """`snapshot` without the lines of source that its dump carries."""
    context = snapshot.context
    if not isinstance(context, dict) or "sources" not in context:
        return snapshot
    return replace(snapshot, context={key: value for key, value in context.items() if key != "sources"})


def redacted(snapshot: Snapshot, key: Path | None, force: bool) -> Snapshot:
    """`snapshot` with aliases for what is private; what they stand for goes to the file `key`."""
    from oomscope.redaction.snapshot import redact

    copy, aliases = redact(snapshot)
    write_key(aliases, key, force)
    return copy


def both_redacted(before: Snapshot, after: Snapshot, key: Path | None, force: bool) -> tuple[Snapshot, Snapshot]:
    """Two snapshots redacted together: the same name has the same alias in both."""
    from oomscope.redaction.aliases import Aliases
    from oomscope.redaction.snapshot import redact

    shared = Aliases()
    first, _ = redact(before, shared)
    second, aliases = redact(after, shared)
    write_key(aliases, key, force)
    return first, second


def write_key(aliases: dict[str, str], key: Path | None, force: bool) -> None:
    """Write what each alias stands for to the file `key`; None: nowhere."""
    from oomscope.rendering.write import write_text_atomically

    if key is not None:
        write_text_atomically(key, json.dumps(aliases, indent=1) + "\n", force)
