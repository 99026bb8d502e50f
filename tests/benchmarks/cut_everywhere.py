"""Real files cut off at many places: ``python -m tests.benchmarks.cut_everywhere [POINTS A FILE]``; by hand.

Of each cut file, what is read must be the beginning of the whole, every entry before the cut must be there, and it may
take five times as long as the whole file. One in ten is also explained and shown in every format.
"""

from __future__ import annotations

import io
import random
import sys
import time
from typing import Any

from oomscope import analyze
from oomscope.errors import OomscopeError
from oomscope.reading import load
from oomscope.rendering.formats import FORMATS, render
from tests.reading.cut_files import WRITERS, assert_prefix, document_of, ends_of_entries, entries_before
from tests.shared import raw

FILES = (
    "oom_leak_total_loss", "train_ok.expandable", "compiled", "ddp.rank0", "late_start", "ring_wrapped", "no_history",
    "oom_cuda_graphs", "recorded/mingpt_xl", "public/Da1sypetals__SnapViewer__assets__memory.pickle",
    "public/codeasier__MemSnapDump__tests__test_data__snapshot_expandable.pkl",
)  # fmt: skip
_SLACK = 0.05
"""Seconds; what is shorter is noise."""


def main() -> None:
    """Cut every file, in every form, and print what came of it."""
    points = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    chance = random.Random(1)
    counts = dict.fromkeys(("cut", "salvaged", "refused in a sentence", "rendered", "wrong"), 0)
    slowest = (0.0, "")
    for file in FILES:
        original = raw(file)
        for form in ("as it is", *WRITERS):
            data = original if form == "as it is" else WRITERS[form](document_of(original))
            worst = _cut(file, form, data, points * (5 if form == "as it is" else 1), chance, counts)
            slowest = max(slowest, (worst, f"{file}, {form}"))
            print(f"{file:60} {form:14} {len(data):>10,} bytes  worst {worst:4.1f} times the whole", flush=True)
    print(counts, f"slowest: {slowest[0]:.1f} times the whole, {slowest[1]}")


def _cut(file: str, form: str, data: bytes, points: int, chance: random.Random, counts: dict[str, int]) -> float:
    start = time.process_time()
    whole = load(io.BytesIO(data))
    taken = time.process_time() - start + _SLACK
    exact = form == "as it is" or (form.startswith(("protocol", "torch")) and form != "protocol 0")
    ends = ends_of_entries(data) if exact else None
    worst = 0.0
    for _ in range(points):
        size = chance.randrange(1, len(data))
        counts["cut"] += 1
        start = time.process_time()
        try:
            part = load(io.BytesIO(data[:size]))
        except OomscopeError:
            counts["refused in a sentence"] += 1
            continue
        except Exception as error:
            counts["wrong"] += 1
            print(f"WRONG {file}, {form}, {size}: {error!r}", flush=True)
            continue
        worst = max(worst, (time.process_time() - start) / taken)
        try:
            assert_prefix(part, whole)
            if ends is not None and part.host is None:
                assert part.entries == entries_before(ends, size), (part.entries, entries_before(ends, size))
            counts["salvaged"] += 1
            if counts["salvaged"] % 10 == 0:
                _show(part)
                counts["rendered"] += 1
        except Exception as error:
            counts["wrong"] += 1
            print(f"WRONG {file}, {form}, {size}: {error!r:.500}", flush=True)
    return worst


def _show(part: Any) -> None:
    findings = analyze(part)
    for form in FORMATS:
        render(findings, form, None)


if __name__ == "__main__":
    main()
