"""Files of other tools: what they carry is read, and what they are is said."""

from __future__ import annotations

import gzip
import json
import lzma
import pickle
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from oomscope.analysis import analyze
from oomscope.errors import SnapshotError
from oomscope.model.category_timeline import CategoryTimeline
from oomscope.reading import load
from oomscope.reading.category_timelines import TimelineFoundError
from oomscope.reading.pt_snap import _Mapped
from tests.samples import bundled_path

TESTS = Path(__file__).resolve().parents[1]
FOREIGN = TESTS / "reading" / "foreign"
MIB = 1 << 20


def timeline_of(path: Path) -> CategoryTimeline:
    with pytest.raises(TimelineFoundError) as found:
        load(path)
    assert str(path) in str(found.value)
    return found.value.timeline


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_points_and_raw_events_of_the_profiler_agree():
    points, raw = timeline_of(FOREIGN / "profiler.json.gz"), timeline_of(FOREIGN / "profiler.raw.json.gz")
    assert points.categories == raw.categories
    assert (points.bytes.max(axis=0) == raw.bytes.max(axis=0)).all()
    assert points.total.max() == raw.total.max() == 5_322_784
    assert points.bytes[-1].tolist() == raw.bytes[-1].tolist()
    # Points are in µs, cut; events in ns from the very first.
    assert points.time_us is not None
    assert raw.time_us is not None
    assert abs(int(points.time_us[-1]) - int(raw.time_us[-1])) <= 1


def test_parameters_of_the_profiled_model_are_those_that_it_has():
    points = timeline_of(FOREIGN / "profiler.json.gz")
    parameters = (256 * 512 + 512 + 512 * 256 + 256) * 4
    assert points.bytes[0, points.categories.index("parameter")] == parameters
    # Two moments a parameter, and a step count for each of the four.
    assert points.bytes[-1, points.categories.index("optimizer_state")] == 2 * parameters + 4 * 4


def test_the_page_of_mosaic_is_read_as_far_as_it_is_exact():
    timeline = timeline_of(FOREIGN / "mosaic.html")
    assert set(timeline.categories) == {"UNKNOWN", "ACTIVATION", "BACKWARD", "OPTIMIZER"}
    assert timeline.time_us is None
    assert timeline.off_by == (1 << 30) // 2000
    peak = analyze(load(bundled_path("train_ok")), whatif=False).main.peak.allocated
    # Every 40th event, and without what the model took before.
    assert 0.8 * peak < timeline.total.max() <= peak


def test_the_json_of_mosaic_is_the_snapshot(tmp_path: Path):
    raw = pickle.loads(lzma.decompress(bundled_path("train_ok").read_bytes()))
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(raw, indent=4))
    ours, theirs = load(bundled_path("train_ok")), load(path)
    assert analyze(theirs, whatif=False).main.peak == analyze(ours, whatif=False).main.peak


def test_the_picture_of_the_profiler_is_named():
    page = b"<html>\n<head><meta charset='utf-8' /><title>GPU Memory Timeline HTML</title></head><body></body></html>"
    path = FOREIGN / "picture.html"
    with pytest.raises(SnapshotError, match="a picture and no figures"):
        load(_File(page, str(path)))


class _File:
    """Bytes as a file with a name."""

    def __init__(self, contents: bytes, name: str) -> None:
        import io

        self._file, self.name = io.BytesIO(contents), name

    def __getattr__(self, name: str):
        return getattr(self._file, name)


@pytest.mark.parametrize(
    "document",
    [
        [[1, 2], [[0] * 9]],
        [[1], [[0] * 8]],
        [[1], [[1] * 9]],
        [["1"], [[0] * 9]],
        [[1.5], [[0] * 9]],
        [[1], [[0, 1 << 70, 0, 0, 0, 0, 0, 0, 0]]],
        [[1, 2, 3, 4], [1, 2, 3]],
        [[1, 9, 5, 0]],
        [[1, 2, 5, 8]],
        [[1, 2, "5", 0]],
        [[None, 2, 5, 0]],
    ],
)
def test_a_damaged_timeline_is_refused(tmp_path: Path, document: object):
    with pytest.raises(SnapshotError) as found:
        load(written(tmp_path / "t.json", document))
    assert not isinstance(found.value, TimelineFoundError)


def test_times_without_a_unit_are_left_out(tmp_path: Path):
    for times in ([5, 6], [2_000_000_000_000_000, 1_900_000_000_000_000]):
        timeline = timeline_of(written(tmp_path / "t.json", [times, [[0] * 9, [0, 7, 0, 0, 0, 0, 0, 0, 0]]]))
        assert timeline.time_us is None
        assert timeline.total.tolist() == [0, 7]


def test_raw_events_of_one_instant_are_one_point(tmp_path: Path):
    events = [[-1, 1, 100, 0], [10**18, 3, -100, 0], [10**18, 3, 100, 5], [10**18 + 5000, 4, -100, 5]]
    timeline = timeline_of(written(tmp_path / "t.json", events))
    assert timeline.total.tolist() == [100, 100, 0]
    assert timeline.bytes[1, timeline.categories.index("gradient")] == 100
    assert timeline.time_us.tolist() == [0, 0, 5]


@pytest.mark.torch
def test_what_this_torch_exports_is_read(tmp_path: Path):
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(64, 64)
    with torch.profiler.profile(profile_memory=True, record_shapes=True, with_stack=True) as profiler:
        layer(torch.randn(8, 64)).sum().backward()
    if not hasattr(profiler, "export_memory_timeline"):
        pytest.skip("this release no longer exports timelines")
    for name in ("t.json", "t.json.gz", "t.raw.json.gz"):
        with pytest.warns(FutureWarning) if torch.__version__ >= "2.8" else _nothing():
            profiler.export_memory_timeline(str(tmp_path / name), device="cpu")
        assert timeline_of(tmp_path / name).total.max() > 64 * 64 * 4


def _nothing():
    from contextlib import nullcontext

    return nullcontext()


PAIRS = {
    "retry_caught": TESTS / "captures" / "retry_caught.pickle.xz",
    "forward_expandable": TESTS / "recording" / "fixtures" / "forward_expandable.pickle.xz",
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_database_of_pt_snap_gives_what_its_pickle_gives(name: str):
    ours = analyze(load(PAIRS[name]), whatif=False)
    theirs = analyze(load(FOREIGN / f"{name}.db.xz"))
    assert theirs.snapshot.entries == ours.snapshot.entries
    assert [note.code for note in theirs.snapshot.notes] == ["reading.from_pt_snap"]
    for one, other in zip(ours.devices, theirs.devices, strict=True):
        assert other.usage == one.usage
        assert (other.peak.allocated, other.peak.reserved) == (one.peak.allocated, one.peak.reserved)
        assert (other.history.curves.reserved == one.history.curves.reserved).all()
        assert (other.history.curves.allocated == one.history.curves.allocated).all()
        segments, rebuilt = one.history.layout.segments, other.history.layout.segments
        for column in ("address", "total_size", "stream"):
            order, other_order = np.argsort(segments.address), np.argsort(rebuilt.address)
            assert (getattr(segments, column)[order] == getattr(rebuilt, column)[other_order]).all(), column
        assert (one.oom and one.oom.verdict.cause) == (other.oom and other.oom.verdict.cause)
    assert all(answer.self_check.agrees for answer in theirs.whatif)


def database(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


TRACE = "CREATE TABLE trace_entry_0 (id INTEGER PRIMARY KEY, action, address, size, stream, callstackId)"
BLOCKS = "CREATE TABLE block_0 (id INTEGER PRIMARY KEY, address, size, requestedSize, state, allocEventId, freeEventId)"
STACKS = "CREATE TABLE callstack (id INTEGER PRIMARY KEY, callstack TEXT)"


def test_stacks_as_text_are_read_as_well(tmp_path: Path):
    path = database(
        tmp_path / "old.db", TRACE, BLOCKS, STACKS,
        "INSERT INTO callstack VALUES (0, 'train.py:50 <module>\ntrain.py:31 forward')",
        "INSERT INTO trace_entry_0 VALUES (0, 2, 4096, 2097152, 0, 0), (1, 4, 4096, 512, 0, 0)",
        "INSERT INTO block_0 VALUES (1, 4096, 512, 500, 1, 1, -1)",
    )  # fmt: skip
    findings = analyze(load(path), whatif=False)
    assert findings.main.usage.allocated == 512
    assert findings.main.usage.requested == 500
    assert (findings.main.sites[0].site.file, findings.main.sites[0].site.line) == ("train.py", 31)


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE other (x)"],
        [TRACE, BLOCKS, STACKS, "INSERT INTO trace_entry_0 VALUES (0, 'x', 1, 1, 0, 0)"],
        [TRACE, BLOCKS, STACKS, "INSERT INTO trace_entry_0 VALUES (0, 99, 1, 1, 0, 0)"],
        [TRACE.replace("size", "sizes"), BLOCKS, STACKS],
        [STACKS, TRACE, "CREATE VIEW block_0 AS SELECT * FROM trace_entry_0"],
        [STACKS, TRACE, "CREATE VIEW block_0 AS SELECT load_extension('x') AS id, 1 address, 1 size, 1 requestedSize, "
         "1 allocEventId, 1 freeEventId"],
    ],
)  # fmt: skip
def test_another_or_a_hostile_database_is_refused(tmp_path: Path, statements: list[str]):
    with pytest.raises(SnapshotError) as found:
        load(database(tmp_path / "x.db", *statements))
    assert "\n" not in str(found.value)


@pytest.mark.thorough
def test_a_database_that_blows_up_is_refused(tmp_path: Path):
    """A default costs the file nothing a row, and memory each time."""
    path = tmp_path / "bomb.db"
    with sqlite3.connect(path) as connection:
        connection.execute(TRACE)
        connection.execute("CREATE TABLE callstack (id INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO callstack VALUES (?)", ((number,) for number in range(3_000)))
        connection.execute(f"ALTER TABLE callstack ADD COLUMN callstack TEXT DEFAULT '{'x' * 1_000_000}'")
    connection.close()
    with pytest.raises(SnapshotError, match="takes more than"):
        load(path)


def test_a_damaged_database_is_refused(tmp_path: Path):
    whole = lzma.decompress((FOREIGN / "retry_caught.db.xz").read_bytes())
    for size in (20, 4096, len(whole) // 2):
        path = tmp_path / f"{size}.db"
        path.write_bytes(whole[:size])
        with pytest.raises(SnapshotError):
            load(path)


def test_ranges_of_mapped_addresses_join_and_part():
    mapped = _Mapped()
    mapped.add(20 * MIB, 20 * MIB, 0)
    mapped.add(0, 20 * MIB, 0)
    mapped.add(40 * MIB, 20 * MIB, 1)
    assert mapped.ranges == [(0, 40 * MIB, 0), (40 * MIB, 60 * MIB, 1)]
    mapped.remove(10 * MIB, 10 * MIB)
    assert mapped.ranges == [(0, 10 * MIB, 0), (20 * MIB, 40 * MIB, 0), (40 * MIB, 60 * MIB, 1)]
    mapped.add(10 * MIB, 10 * MIB, 0)
    mapped.remove(0, 60 * MIB)
    assert mapped.ranges == []


def test_a_compressed_timeline_on_standard_input_is_read():
    import io

    with pytest.raises(TimelineFoundError):
        load(io.BytesIO((FOREIGN / "profiler.json.gz").read_bytes()))
    assert gzip.decompress((FOREIGN / "profiler.json.gz").read_bytes()).startswith(b"[[")
