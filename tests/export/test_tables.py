"""Tables as CSV and Parquet: what the study knows, row by row, and the same in both."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oomscope.analysis.study import SnapshotStudy
from oomscope.commands.common.errors import run
from oomscope.commands.export import TABLES as OFFERED
from oomscope.errors import RequestError
from oomscope.export import tables as module
from oomscope.export.delimited import to_csv
from oomscope.export.parquet import to_parquet
from oomscope.export.tables import TABLES, tables
from oomscope.history import BEFORE
from oomscope.reading import load
from tests.builders import block, entry, loaded, segment
from tests.export.exported import ALL, IDS, hostile_snapshot, study_of
from tests.samples import bundled_path, sample_path
from tests.shared import captures, needs_shared, shared_snapshot

Row = dict[str, str]


def rows_of(study: SnapshotStudy, name: str) -> list[Row]:
    """The rows of a table as they are read from its CSV."""
    table = next(one for one in tables(study) if one.name == name)
    text = b"".join(to_csv(table)).decode("utf-8")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def number(row: Row, name: str, missing: int) -> int:
    return int(row[name]) if row[name] else missing


def check(study: SnapshotStudy) -> None:
    """The lifetimes give the curves, and the curves those of the study."""
    lifetimes, curves = rows_of(study, "lifetimes"), rows_of(study, "curves")
    for device in study.devices:
        history = device.history
        count = history.recorded
        mine = [row for row in curves if row["device"] == str(device.index)]
        assert [number(row, "entry", BEFORE) for row in mine] == list(range(BEFORE, count))
        for name in ("allocated", "active", "reserved"):
            assert [int(row[name]) for row in mine] == getattr(history.curves, name)[: count + 1].tolist()
        change = np.zeros(count + 2, np.int64)
        for row in lifetimes:
            if row["device"] != str(device.index):
                continue
            size, born = int(row["bytes"]), number(row, "born", BEFORE)
            freed = number(row, "freed", count if row["end_state"] == "allocated" or history.bridge else BEFORE)
            assert row["bytes_uncertain"] == "0" or int(row["bytes_uncertain"]) > 0
            change[born - BEFORE] += size
            change[freed - BEFORE] -= size
        live = np.cumsum(change)[: count + 1]
        assert live.tolist() == history.curves.allocated[: count + 1].tolist()


@pytest.mark.parametrize("path", [path for _, path in ALL], ids=IDS)
def test_lifetimes_add_up_to_the_curves(path: Path):
    check(study_of(path))


@needs_shared
@pytest.mark.parametrize("name", captures())
def test_they_do_on_real_runs(name: str):
    check(SnapshotStudy(shared_snapshot(name)))


@pytest.mark.parametrize("path", [path for _, path in ALL], ids=IDS)
def test_parquet_holds_what_csv_does(path: Path):
    parquet = pytest.importorskip("pyarrow.parquet")
    study = study_of(path)
    for table in tables(study):
        read = parquet.read_table(io.BytesIO(b"".join(to_parquet(table))))
        expected = rows_of(study, table.name)
        assert read.num_rows == len(expected)
        assert read.schema.metadata[b"table"] == table.name.encode()
        for name in read.column_names:
            values = ["" if value is None else str(value) for value in read[name].to_pylist()]
            assert [value.removeprefix("'") for value in values] == [row[name].removeprefix("'") for row in expected]


def test_each_row_says_what_the_study_knows():
    study = study_of(sample_path("oom_activations"))
    (device,) = study.devices
    history, trace = device.history, device.history.trace
    sites = study.sites
    for at, row in enumerate(rows_of(study, "lifetimes")):
        lifetimes = history.lifetimes
        assert int(row["address"]) == int(lifetimes.address[at])
        assert row["requested_bytes"] == str(lifetimes.requested[at])
        assert row["category"] == module.CATEGORIES[device.categories[at]]
        assert row["phase"] == module.PHASES[device.phases[at]]
        site = sites.location(int(sites.sites(lifetimes.stack[at : at + 1])[0]))
        if site is None:
            assert row["site_file"] == row["site_line"] == row["site_function"] == ""
            assert row["no_site_because"]
        else:
            assert (row["site_file"], row["site_line"], row["site_function"]) == (
                site.file,
                str(site.line),
                site.function,
            )
            assert row["no_site_because"] == ""
        if lifetimes.born[at] > BEFORE:
            assert row["born_us"] == str(trace.time_us[lifetimes.born[at]])
        assert (row["freed"] == "") == (lifetimes.freed[at] >= history.entries)


def test_the_steps_of_the_trace_and_those_that_were_recorded():
    study = study_of(bundled_path("oom_leak_in_validation"))
    (device,) = study.devices
    steps = rows_of(study, "steps")
    assert [(row["step"], int(row["peak_allocated"])) for row in steps] == [
        (step.name, step.peak_allocated) for step in device.steps.steps
    ]
    recorded = rows_of(study, "recorded-steps")
    assert len(recorded) == len(study.snapshot.recorded.steps) == 16
    first = study.snapshot.recorded.steps[0]
    assert int(recorded[0]["allocated"]) == first.allocated[0]
    assert recorded[0]["peak_reserved"] == ""  # it was not asked for then, and is not 0


def test_recorded_steps_are_those_of_their_device():
    study = study_of(bundled_path("ddp.rank1"))
    assert [device.index for device in study.devices] == [1]
    steps = study.snapshot.recorded.steps
    assert [int(row["reserved"]) for row in rows_of(study, "recorded-steps")] == [step.reserved[1] for step in steps]


def test_stacks_can_be_put_together_again():
    study = study_of(sample_path("oom_activations"))
    found: dict[int, list[tuple[str, int, str]]] = {}
    for row in rows_of(study, "stacks"):
        frames = found.setdefault(int(row["stack"]), [])
        assert len(frames) == int(row["depth"])
        frames.append((row["file"], int(row["line"]), row["function"]))
    stacks = study.snapshot.stacks
    for stack in range(len(stacks)):
        assert found.get(stack, []) == [(frame.filename, frame.line, frame.name) for frame in stacks[stack]]


def test_a_long_table_is_made_in_parts_with_one_head(monkeypatch: pytest.MonkeyPatch):
    study = study_of(sample_path("oom_activations"))
    whole = {table.name: b"".join(to_csv(table)) for table in tables(study)}
    monkeypatch.setattr(module, "ROWS", 100)
    for table in tables(study):
        parts = list(to_csv(table))
        assert b"".join(parts) == whole[table.name]
        assert len(parts) == max(1, -(-(whole[table.name].count(b"\r\n") - 1) // 100))
    parquet = pytest.importorskip("pyarrow.parquet")
    read = parquet.ParquetFile(io.BytesIO(b"".join(to_parquet(tables(study)[0]))))
    assert read.metadata.num_row_groups > 5
    assert read.metadata.num_rows == len(study.devices[0].history.lifetimes)


def test_hostile_names_run_nothing_and_break_no_row():
    study = SnapshotStudy(hostile_snapshot())
    for table in tables(study):
        for part in to_csv(table):
            text = part.decode("utf-8")
            cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
            assert all(cell.isprintable() for cell in cells)
            assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    named = [row["site_function"] for row in rows_of(study, "lifetimes") if row["site_function"]]
    assert named
    assert all(name.startswith("'=cmd|") for name in named)
    pytest.importorskip("pyarrow")
    assert all(b"".join(to_parquet(table)) for table in tables(study))


def test_addresses_beyond_the_sign_are_positive():
    high = (1 << 64) - (1 << 30)
    study = SnapshotStudy(loaded([segment(high, [block(2 << 20)])], [[entry("alloc", high, 2 << 20)]]))
    (row,) = rows_of(study, "lifetimes")
    assert int(row["address"]) == high


def test_what_is_not_known_is_empty():
    trace = [entry("alloc", 0x7F0000000000, 2 << 20), entry("free_completed", 0x7F0000000000, 2 << 20)]
    for item in trace:
        del item["time_us"]
    study = SnapshotStudy(loaded([segment(0x7F0000000000, [block(2 << 20)])], [[*trace, trace[0]]]))
    gone, live = rows_of(study, "lifetimes")
    assert (gone["born"], gone["gone"], live["born"]) == ("0", "1", "2")
    assert not any(
        row[name] for row in (gone, live) for name in ("born_us", "freed_us", "gone_us", "site_file", "stack")
    )
    assert (live["freed"], live["gone"]) == ("", "")
    assert all(row["time_us"] == "" for row in rows_of(study, "curves"))


def test_without_pyarrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RequestError, match=r"oomscope\[parquet\]"):
        list(to_parquet(tables(study_of(sample_path("oom_activations")))[0]))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_writes_every_table_or_one(folder: Path):
    path = str(sample_path("oom_activations"))
    assert run(["export", path, "--to", "csv"]) == 0
    names = {file.name for file in folder.iterdir()}
    assert names == {f"oom_activations.{name}.csv" for name in ("lifetimes", "curves", "steps", "stacks")}
    assert run(["export", path, "--to", "csv"]) == 1  # all are there already
    assert run(["export", str(bundled_path("train_ok")), "--to", "csv", "--redact"]) == 0
    assert len((folder / "train_ok.redacted.recorded-steps.csv").read_text().splitlines()) == 5
    assert run(["export", path, "--to", "csv", "--table", "steps", "-o", "one"]) == 0
    assert (folder / "one").read_bytes() == (folder / "oom_activations.steps.csv").read_bytes()


@pytest.mark.parametrize(
    "options", [["--to", "csv", "-o", "x"], ["--to", "parquet", "-o", "-"], ["--to", "json", "--table", "steps"]]
)
def test_what_cannot_be_asked_for_is_refused(options: list[str], folder: Path):
    assert run(["export", str(sample_path("oom_activations")), *options]) == 2
    assert list(folder.iterdir()) == []


def test_the_command_offers_every_table():
    assert OFFERED == TABLES


def test_a_redacted_table_names_nothing(folder: Path):
    path = sample_path("oom_activations")
    own = {frame.filename for frame in load(path).stacks.frames if "site-packages" not in frame.filename}
    assert own
    assert run(["export", str(path), "--to", "csv", "--redact"]) == 0
    text = "".join(file.read_text() for file in folder.iterdir())
    assert not [name for name in own if name in text]
    plain, hidden = rows_of(study_of(path), "curves"), (folder / "oom_activations.redacted.curves.csv").read_text()
    assert [row["allocated"] for row in plain] == [row["allocated"] for row in csv.DictReader(io.StringIO(hidden))]


def test_a_table_of_a_snapshot_without_anything_has_its_head(folder: Path):
    empty: Any = SnapshotStudy(loaded([], []))
    for table in tables(empty):
        assert b"".join(to_csv(table)).count(b"\r\n") <= 1
