"""Run as ``python -m oomscope.recording.verdict FILE``: the headline of the OOM's verdict, as JSON on stdout."""

from __future__ import annotations

import json
import sys

from oomscope.analysis import analyze
from oomscope.reading import load
from oomscope.wording.verdict_text import headline


def headline_of(path: str) -> str | None:
    """Why the dump's OOM happened, in one line; None where the file shows none.

    Raises:
        OomscopeError: the file cannot be read or understood.
    """
    snapshot = load(path)
    findings = analyze(snapshot, whatif=False)
    device = findings.device(snapshot.recorded.request.device or 0)
    return None if device.oom is None else headline(device.oom.verdict)


if __name__ == "__main__":
    sys.stdout.write(json.dumps({"headline": headline_of(sys.argv[1])}))
