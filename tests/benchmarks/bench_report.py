"""Prints how large each report is, how long it takes to make, and how fast Chromium opens it.

Run it as ``python -m tests.benchmarks.bench_report``. Every bundled sample is measured, and the large capture where it
lies beside the repository. Ends with 1 where a bound is broken.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from oomscope.units import format_bytes
from tests.benchmarks.measuring import measure, oomscope
from tests.browser.conftest import Browser, chromium
from tests.samples import SAMPLES, sample_path
from tests.shared import SHARED, packed

LARGE = "big_history"
MOST_BYTES = {"typical": 400_000, "any": 1_500_000}
READY = 0.3
"""Seconds until the largest sample can be used."""

SHIFT = 0.01
OPENINGS = 3

_TIMES = """
const done = arguments[0];
let shift = 0;
new PerformanceObserver(list => { for (const one of list.getEntries()) shift += one.value; })
  .observe({type: 'layout-shift', buffered: true});
const [page] = performance.getEntriesByType('navigation'), ready = performance.getEntriesByName('ready')[0];
setTimeout(() => done([ready ? ready.startTime : null, page.loadEventStart, shift]), 300);
"""


class Opened(NamedTuple):
    """What the browser measured, times from the start of the navigation: seconds, seconds, a score."""

    ready: float
    loaded: float
    shift: float


class Row(NamedTuple):
    """One report: bytes, seconds to make it, and how it opens; None without a browser."""

    name: str
    size: int
    made: float
    opened: Opened | None

    def broken(self) -> list[str]:
        """Which bounds it breaks."""
        bound = MOST_BYTES["any" if self.name == LARGE else "typical"]
        found = [f"{self.size:,} bytes, not {bound:,}"] if self.size > bound else []
        if self.opened is not None:
            found += [f"ready after {self.opened.ready:.2f} s, not {READY} s"] if self.opened.ready > READY else []
            found += [f"moves by {self.opened.shift:.3f}, not {SHIFT}"] if self.opened.shift > SHIFT else []
        return found


def rows(folder: Path, browser: Browser | None) -> Iterator[Row]:
    """Make each report in a process of its own, and open it."""
    paths = {name: sample_path(name) for name in SAMPLES}
    if SHARED.is_dir():
        paths[LARGE] = packed(LARGE)
    for name, path in paths.items():
        html = folder / f"{name}.html"
        cost = measure(oomscope("report", str(path), "-o", str(html), "--force"), runs=1)
        yield Row(name, html.stat().st_size, cost.seconds, None if browser is None else open_page(browser, html))


def open_page(browser: Browser, html: Path) -> Opened:
    """The best of some openings."""
    found = []
    for _ in range(OPENINGS):
        browser.open(html)
        ready, loaded, shift = browser.driver.execute_async_script(_TIMES)
        found.append(Opened(ready / 1000, loaded / 1000, shift))
    return min(found)


def main() -> int:
    """Measure and print."""
    print(f"{'report':<24}{'HTML':>10}{'made in':>10}{'ready':>10}{'loaded':>10}{'shift':>8}")
    broken = 0
    with tempfile.TemporaryDirectory(prefix="oomscope-bench-") as name, chromium() as browser:
        if browser is None:
            print("neither ready nor loaded: no Chromium with its driver, or no selenium")
        for row in rows(Path(name), browser):
            opened = row.opened
            times = f"{opened.ready:>8.2f} s{opened.loaded:>8.2f} s{opened.shift:>8.3f}" if opened else ""
            faults = row.broken()
            broken += len(faults)
            print(
                f"{row.name:<24}{format_bytes(row.size):>10}{row.made:>8.2f} s{times}  {'; '.join(faults)}", flush=True
            )
    print(f"bounds: {MOST_BYTES}, ready within {READY} s, shift below {SHIFT}; {broken} broken")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
