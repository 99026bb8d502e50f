"""What one test does to GPU memory: recorded, measured, and held against its budget."""

from __future__ import annotations

import gc
import linecache
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from oomscope.analysis.compare.baseline import as_baseline
from oomscope.analysis.compare.budget import Budget, Checked, CheckResult, check
from oomscope.analysis.compare.figures import Figures, measure
from oomscope.analysis.records import Location
from oomscope.budgets import Limits, make_budget
from oomscope.model import Snapshot
from oomscope.reading import load
from oomscope.recording import Options, Recording, backend
from oomscope.recording.step_log import now_us
from oomscope.rendering.check import shorten_for
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.json_plain import dumped
from oomscope.rendering.write import write_text_atomically
from oomscope.testing import MARKER, SAVE
from oomscope.units import format_bytes
from oomscope.version import __version__
from oomscope.wording.check import INCOMPLETE, blamed, broken_text, check_headline, unknown_text
from oomscope.wording.clean import clean
from oomscope.wording.paths import Shorten

MAX_ENTRIES = 1_000_000
MOST_SITES = 5
MOST_TEXT = 100
_KEY = pytest.StashKey["GpuMemory"]()
_TABLES = ("max_site", "max_category")
_TEXTS = ("max_peak", "max_reserved", "max_fragmentation", "max_growth", "baseline", "tolerance")


def skip_without_gpu() -> None:
    """Skip the test that runs where no GPU memory can be recorded, and say why."""
    reason = why_no_gpu()
    if reason is not None:
        pytest.skip(f"{MARKER}: {reason}")


def why_no_gpu() -> str | None:
    """Why no GPU memory can be recorded here; None where it can."""
    found = backend.current()
    if found is None:
        return "torch is not installed"
    return found.why_never()


class GpuMemory:
    """A recording of one test; its figures are those beyond what was allocated when it began.

    The marker and the fixture of one test share it; it begins with the first of them and ends with the last.
    """

    def __init__(self) -> None:
        self._users = 0
        self._began_us: int | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._recording: Recording | None = None
        self._snapshot: Snapshot | None = None

    @classmethod
    def of(cls, item: pytest.Item) -> GpuMemory:
        """The one of a test."""
        return item.stash.setdefault(_KEY, cls())

    def __enter__(self) -> GpuMemory:
        self._users += 1
        if self._users == 1:
            gc.collect()  # what earlier tests left in cycles would be freed in the middle of this one
            self._folder = tempfile.TemporaryDirectory(prefix="oomscope-test-")
            folder = Path(self._folder.name)
            options = Options(output_dir=folder, on=frozenset(), walk_budget=0, verdict=0, max_entries=MAX_ENTRIES)
            self._recording = Recording(options)
            self._recording.__enter__()
            self._began_us = now_us()
        return self

    def __exit__(self, *error: object) -> None:
        self._users -= 1
        if self._users == 0 and self._recording is not None and self._folder is not None:
            self._recording.__exit__(None, None, None)
            self._folder.cleanup()
            self._recording = self._folder = None

    def snapshot(self) -> Snapshot | None:
        """The recording until now; None where the test has not used CUDA yet."""
        if self._recording is not None:
            path = self._recording.snapshot()
            if path is not None:
                self._snapshot = load(path)
                path.unlink()
        return self._snapshot

    def figures(self) -> Figures:
        """All figures until now, with the sites that they are of."""
        snapshot = self.snapshot()
        if snapshot is None or not snapshot.devices:
            return Figures(0, 0, 0, 0, {}, ())
        return measure(snapshot, since_us=self._began_us)

    @property
    def peak(self) -> int:
        """The most bytes allocated at once, beyond those at the beginning."""
        return self.figures().peak_allocated or 0

    @property
    def reserved(self) -> int:
        """The most bytes reserved at once, beyond those at the beginning."""
        return self.figures().peak_reserved or 0

    @property
    def growth_per_pass(self) -> int | None:
        """Bytes that a pass of the test's loop leaves behind; None where no pass is known."""
        return self.figures().growth_per_pass


@dataclass
class Verdict:
    """What came of a test: whether it passed by itself, and why it fails all the same."""

    passed: bool = False
    failure: BaseException | None = None


@contextmanager
def checked(item: pytest.Item, marker: pytest.Mark) -> Iterator[Verdict]:
    """Measure the test while it runs, then hold it against the budget of its marker."""
    verdict = Verdict()
    limits, baseline = limits_of(marker, item.config.rootpath)
    saves = baseline is not None and item.config.getoption(SAVE)
    budget = make_budget(limits if not saves else Limits())
    with GpuMemory.of(item) as memory:
        yield verdict
        if not verdict.passed:
            return
        found = memory.figures()
        if saves and baseline is not None:
            write_text_atomically(baseline, dumped({**as_baseline(found), "version": __version__}) + "\n", force=True)
            return
        verdict.failure = _failure(found, budget, memory)


def limits_of(marker: pytest.Mark, root: Path) -> tuple[Limits, Path | None]:
    """The limits that the marker sets, and the file of its baseline, which is named from `root`.

    Raises:
        UsageError: it has an argument that is none.
    """
    unknown = sorted(set(marker.kwargs) - set(_TEXTS) - set(_TABLES))
    if marker.args or unknown:
        what = repr(unknown[0] if unknown else marker.args[0])
        raise pytest.UsageError(f"{MARKER} takes {', '.join((*_TEXTS, *_TABLES))} by name, not {what}")
    texts = {name: None if (value := marker.kwargs.get(name)) is None else str(value) for name in _TEXTS}
    tables = [tuple(f"{name}={size}" for name, size in marker.kwargs.get(table, {}).items()) for table in _TABLES]
    baseline = None if texts["baseline"] is None else root / texts["baseline"]
    limits = Limits(
        peak=texts["max_peak"],
        reserved=texts["max_reserved"],
        fragmentation=texts["max_fragmentation"],
        growth=texts["max_growth"],
        sites=tables[0],
        categories=tables[1],
        baseline=None if baseline is None else str(baseline),
        tolerance=texts["tolerance"],
    )
    return limits, baseline


def _failure(found: Figures, budget: Budget, memory: GpuMemory) -> BaseException | None:
    """Why the test fails; None where it keeps its budget."""
    result = check(found, budget)
    if result.ok and result.complete:
        return None
    return pytest.fail.Exception(failure_text(result, memory.snapshot()), pytrace=False)


def failure_text(result: CheckResult, snapshot: Snapshot | None) -> str:
    """What broke, with the lines that broke it and their source."""
    shorten = shorten_for(result)
    sources = Sources(snapshot)
    lines = [f"GPU memory: {check_headline(result)}"]
    for one in result.broken:
        lines += ["", broken_text(one, shorten), *_sites(one, shorten, sources)]
    lines += [unknown_text(one, shorten) for one in result.unknown]
    if not result.complete:
        lines.append(INCOMPLETE)
    return "\n".join(lines)


def _sites(one: Checked, shorten: Shorten, sources: Sources) -> Iterator[str]:
    for by in one.by[:MOST_SITES]:
        yield f"  {format_bytes(by.bytes):>10}  {blamed(by, shorten)}"
        where = by.caller or by.site
        text = _line(where, sources) if where is not None else ""
        if text:
            yield f"              {text}"


def _line(where: Location, sources: Sources) -> str:
    """The text of a line: the dump has it for what is alive; the file is this process's own, so it may be read."""
    excerpt = sources.around(where.file, where.line, 0)
    return excerpt.text if excerpt is not None else clean(linecache.getline(where.file, where.line).strip(), MOST_TEXT)
