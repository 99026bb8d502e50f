"""Prints how fast replays are, and what the rows of ``oomscope whatif`` cost.

Run it as ``python -m tests.benchmarks.bench_whatif``. Times are of the processor, not of the clock, so that other work
on the machine counts less. Needs the captures beside the repository.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from oomscope.allocator import AllocatorConfig
from oomscope.analysis.study import study_device
from oomscope.analysis.whatif import report_whatif, whatif
from oomscope.analysis.whatif.preparation import prepare
from oomscope.history import device_history, recorded_config
from tests.shared import SHARED, shared_snapshot
from tests.whatif.subjects import VARLEN

SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:512",
    "roundup_power2_divisions:8",
    "garbage_collection_threshold:0.6",
)


def seconds(work: Callable[[], object], runs: int = 3) -> float:
    """The least processor time of some runs."""
    times = []
    for _ in range(runs):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def replays(name: str, runs: int) -> None:
    """Entries replayed a second under each setting."""
    snapshot = shared_snapshot(name)
    history = device_history(snapshot.devices[0], recorded_config(snapshot))
    entries = history.entries
    preparing = seconds(lambda: prepare(snapshot, history), 1)
    print(f"{name}: {entries:,} entries; extract, replay as recorded and compare {preparing:.2f} s")
    subject = prepare(snapshot, history)
    for conf in SETTINGS:
        config = AllocatorConfig.parse(conf)
        took = seconds(lambda config=config: subject.replayer.run(config, addresses=subject.addresses()), runs)  # type: ignore[misc]
        print(f"  replay {conf or 'default':<36}{took:>8.3f} s{entries / took / 1e6:>8.2f} M entries/s (goal: 1)")


def rows() -> None:
    """What the rows of the command cost on 132 k entries."""
    snapshot = shared_snapshot(VARLEN)
    history = device_history(snapshot.devices[0], recorded_config(snapshot))
    one = seconds(lambda: whatif(snapshot, 0, orders=1, least_memory="none", history=history))
    full = seconds(lambda: whatif(snapshot, 0, history=history), 1)
    print(f"  the default set, one order of addresses each     {one:>8.2f} s (goal: 4)")
    print(f"  ranges and least memory of two rows on top       {full - one:>8.2f} s (goal: 15)")


def report() -> None:
    """What a report of a large snapshot gains by it."""
    snapshot = shared_snapshot("big_history")
    started = time.process_time()
    answer = report_whatif(study_device(snapshot, snapshot.devices[0].index))
    print(
        f"  report_whatif, {len(answer.rows)} rows, {len(answer.skipped)} left out"
        f"          {time.process_time() - started:>8.2f} s (goal: 2.5 x pickle.load)"
    )


def main() -> int:
    """Measure and print."""
    if not SHARED.is_dir():
        print(f"the captures are not here ({SHARED})")
        return 0
    replays(VARLEN, 5)
    rows()
    replays("big_history", 1)
    report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
