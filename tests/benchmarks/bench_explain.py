"""Prints how long ``oomscope explain`` takes for 100 MB of log: few messages, many, and nothing but messages.

Run it as ``python -m tests.benchmarks.bench_explain``. Ends with 1 where that is more than 3 seconds
of the processor's time.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from oomscope.units import format_bytes, format_count
from tests.benchmarks.measuring import measure, oomscope
from tests.messages.public import messages

SIZE = 100_000_000
MOST_SECONDS = 3.0
_LINE = (
    "[2026-01-02 03:04:{second:02}] INFO epoch {epoch} step {step} loss {loss:.4f} lr 1e-4 memory: {step}"
    " grad_norm 1.23 allocated on device, 12.3 it/s, eta 1:23:45\n"
)
"""A line of a training log that is full of the words that messages have as well."""
EVERY = (100_000, 1_000, 20, 1)
"""After so many lines comes a message."""


def log(every: int) -> bytes:
    """A log of `SIZE` bytes with the public messages in turn."""
    texts = [one["text"] for one in messages("first")]
    parts, size, step = [], 0, 0
    while size < SIZE:
        line = _LINE.format(second=step % 60, epoch=step // 1000, step=step, loss=1 / (step + 1))
        if step % every == every - 1:
            line += texts[step // every % len(texts)] + "\n"
        parts.append(line)
        size += len(line)
        step += 1
    return "".join(parts).encode()


def main() -> int:
    """Measure and print."""
    slow = False
    print(f"{'100 MB of log, a message after':<34}{'wall':>11}{'cpu':>11}{'peak':>11}")
    with tempfile.TemporaryDirectory(prefix="oomscope-bench-") as folder:
        for every in EVERY:
            path = Path(folder, "train.log")
            path.write_bytes(log(every))
            cost = measure(oomscope("explain", str(path), "-f", "json"), runs=1)
            cpu, peak = cost.cpu_seconds or cost.seconds, format_bytes(cost.peak_bytes or 0)
            print(f"{format_count(every) + ' lines':<34}{cost.seconds:>9.2f} s{cpu:>9.2f} s{peak:>11}", flush=True)
            slow |= cpu > MOST_SECONDS
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
