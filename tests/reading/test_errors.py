"""What people really hand over instead of a snapshot, and what they are told."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import pickle
import zipfile
from pathlib import Path

import pytest

from oomscope.errors import SnapshotError, UnsafePickleError
from oomscope.reading import load
from tests.builders import entry, pickled, snapshot


def error_of(contents: bytes) -> str:
    with pytest.raises(SnapshotError) as caught:
        load(io.BytesIO(contents))
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith("the given file: ")
    return said


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"oom\.pickle: there is no such file"):
        load(tmp_path / "oom.pickle")
    with pytest.raises(SnapshotError):
        load("nul\0byte")


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="this is a directory"):
        load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "oom.pickle"
    path.touch(mode=0)
    with pytest.raises(SnapshotError, match="no permission"):
        load(path)


def test_an_empty_file_and_empty_archives() -> None:
    assert "is empty" in error_of(b"")
    assert "is empty" in error_of(gzip.compress(b""))


def test_a_git_lfs_pointer() -> None:
    assert "git lfs pull" in error_of(b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")


def test_checkpoints() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("model/data.pkl", b"x")
    assert "a checkpoint written by torch.save" in error_of(archive.getvalue())
    assert "torch.save (its old format)" in error_of(pickle.dumps(0x1950A86A20F9469CFC6C, 2))
    assert "what looks like a checkpoint" in error_of(pickle.dumps({"model_state_dict": {}, "epoch": 3}))
    assert "what looks like a checkpoint" in error_of(pickle.dumps({"layers.0.weight": 1, "layers.0.bias": 2}))


def test_other_pickles_are_described() -> None:
    assert "a dict with 2 keys: 'lr', 'seed'" in error_of(pickle.dumps({"lr": 1, "seed": 2}))
    assert "a list of 3 items (an int)" in error_of(pickle.dumps([1, 2, 3]))
    assert "a str (hello)" in error_of(pickle.dumps("hello"))
    assert "an empty dict" in error_of(pickle.dumps({}))
    assert "None" in error_of(pickle.dumps(None))
    assert "a list of 2 items (a dict)" in error_of(pickle.dumps([{"lr": 1}, {"lr": 2}]))


def test_other_archives_and_texts() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("oom.pickle", b"x")
    assert "zip archive" in error_of(archive.getvalue())
    assert "plain text, beginning with 'Traceback (most recent call last)" in error_of(
        b"Traceback (most recent call last):\n  File ..."
    )
    assert "plain text" in error_of(b"(base) user@host:~$ python train.py\n")
    assert "Chrome trace" in error_of(b'{"traceEvents": []}')
    assert "a dict with 1 key: 'a'" in error_of(b'{"a": 1}')
    assert "begins like JSON but is none" in error_of(b"[INFO] step 1")
    assert "unknown kind, beginning with 0x00ff" in error_of(b"\x00\xff\x00\xff")


def test_pages_without_a_snapshot() -> None:
    assert "torch 2.0" in error_of(b"<!DOCTYPE html><script>let alloc_data = {}; init(alloc_data)</script>")
    assert "a web page titled 'Sign in' that holds no" in error_of(b"<html><title>Sign in</title>")
    assert "cut off" in error_of(b'<html>[{"name": "snapshot.pickle", "base64": "gASVAAA')
    assert "damaged" in error_of(b'<html>[{"base64": "gASVA"}]')


DATA = pickle.dumps(snapshot([], [[entry("alloc", row, 512, time_us=row, frames=[]) for row in range(6000)]]))


def test_a_damaged_compressed_file() -> None:
    data = bytearray(lzma.compress(os.urandom(100) + DATA))
    data[len(data) // 2] ^= 0xFF
    assert "damaged" in error_of(bytes(data))


def test_errors_say_where_the_odd_value_stands() -> None:
    document = snapshot([], [[entry("alloc", row, 512) for row in range(1500)]])
    document["device_traces"][0][1234]["size"] = "large"
    with pytest.raises(SnapshotError, match=r"entry 1,234 of device 0's trace has a str \(large\) as 'size'"):
        load(pickled(document))
    del document["device_traces"][0][1234]["size"]
    with pytest.raises(SnapshotError, match="entry 1,234 of device 0's trace has no 'size'"):
        load(pickled(document))


def test_unsafe_and_unreadable_are_one_family() -> None:
    assert issubclass(UnsafePickleError, SnapshotError)
