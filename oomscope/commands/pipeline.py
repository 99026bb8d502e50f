"""From a file to findings, as every command that reports does it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from oomscope.commands.output import STDOUT
from oomscope.commands.progress import Progress

if TYPE_CHECKING:
    from oomscope.analysis import Findings
    from oomscope.model import Snapshot


def read(snapshot: str, progress: Progress) -> Snapshot:
    """Load `snapshot`, a path or ``-`` for stdin."""
    from oomscope.reading import load

    source = sys.stdin.buffer if snapshot == STDOUT else snapshot
    return load(source, progress=progress.read)


def find(
    snapshot: str,
    *,
    at: str | int = "auto",
    device: int | None = None,
    whatif: bool = True,
    redact: bool = False,
    redact_key: Path | None = None,
    force: bool = False,
) -> Findings:
    """Load, redact where asked for, and analyse.

    Raises:
        OomscopeError: the file cannot be read, or not answer what was asked.
    """
    with Progress() as progress:
        loaded = read(snapshot, progress)
        if redact:
            progress.stage("Redacting")
            loaded = redacted(loaded, redact_key, force)
        progress.stage("Analysing")
        from oomscope.analysis import analyze

        return analyze(loaded, at=at, device=device, whatif=whatif)


def redacted(snapshot: Snapshot, key: Path | None, force: bool) -> Snapshot:
    """`snapshot` with aliases for what is private; what they stand for goes to the file `key`."""
    from oomscope.rendering.redact import redact
    from oomscope.rendering.write import write_text_atomically

    copy, aliases = redact(snapshot)
    if key is not None:
        write_text_atomically(key, json.dumps(aliases, indent=1) + "\n", force)
    return copy
