"""Paths, file objects, pipes, and progress."""

from __future__ import annotations

import io
import os
import pickle
import threading
from pathlib import Path

import pytest

from oomscope.errors import SnapshotError
from oomscope.reading import load
from tests.builders import entry, pickled, snapshot
from tests.reading.comparing import assert_same

DOCUMENT = snapshot([], [[entry("alloc", row, 512, time_us=row) for row in range(20_000)]])
DATA = pickle.dumps(DOCUMENT)


def test_a_path_as_text_or_object(tmp_path: Path) -> None:
    path = tmp_path / "a snapshot.pickle"
    path.write_bytes(DATA)
    assert_same(load(str(path)), load(path))


def test_a_file_object_is_read_from_where_it_stands_and_left_open(tmp_path: Path) -> None:
    path = tmp_path / "oom.pickle"
    path.write_bytes(b"header" + DATA)
    with path.open("rb") as file:
        file.seek(6)
        assert load(file).entries == 20_000
        assert not file.closed
        file.seek(0)
        with pytest.raises(SnapshotError, match="unknown kind"):
            load(file)


def test_a_pipe_is_read_once() -> None:
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as file:
            file.write(DATA)

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(reading, "rb") as file:
        assert load(file).entries == 20_000
    thread.join()


def test_an_object_that_can_only_read() -> None:
    class Reader:
        def __init__(self) -> None:
            self.file = io.BytesIO(DATA)

        def read(self, size: int = -1) -> bytes:
            return self.file.read(size)

    assert load(Reader()).entries == 20_000  # type: ignore[arg-type]


def test_a_text_file_object_is_named_as_such() -> None:
    with pytest.raises(SnapshotError, match="binary mode"):
        load(io.StringIO("{}"))  # type: ignore[arg-type]


def test_progress_rises_to_the_whole_file() -> None:
    calls: list[tuple[int, int, int]] = []
    data = pickle.dumps(snapshot([], [[entry("alloc", row, 512, time_us=row) for row in range(80_000)]]))
    load(io.BytesIO(data), progress=lambda done, total, entries: calls.append((done, total, entries)))
    assert len(calls) > 3
    assert calls == sorted(calls)
    assert 20_000 < calls[-2][2] <= 80_000
    assert calls[-1] == (len(data), len(data), 80_000)


def test_progress_of_the_plain_way_counts_bytes() -> None:
    data = pickled(DOCUMENT, 2).getvalue()
    calls: list[tuple[int, int, int]] = []
    load(io.BytesIO(data), progress=lambda *call: calls.append(call))
    assert [call[0] for call in calls] == sorted(call[0] for call in calls)
    assert calls[-1] == (len(data), len(data), 20_000)


def test_bytes_behind_the_end_of_the_pickle_do_not_matter() -> None:
    assert load(io.BytesIO(DATA + bytes(3))).entries == 20_000
