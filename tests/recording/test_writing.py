"""Files: whole or not at all, never over another, and a way down when there is no room."""

from __future__ import annotations

import errno
import gzip
import json
import os
import pickle
import pickletools
import stat
from pathlib import Path

import pytest

from oomscope.recording import dump, writing
from oomscope.recording.options import build, plain
from oomscope.recording.process import hide_secrets

torch = pytest.importorskip("torch", reason="the backend needs torch")
pytestmark = pytest.mark.torch

from tests.recording.fake import FakeBackend  # noqa: E402


def make(tmp_path, backend=None, **options):
    backend = backend or FakeBackend(recording=True)
    request = {"device": 0, "alloc_size": 1, "limit_or_total": 16 << 30, "device_free": 2}
    job = dump.Job("oom", "observer", tmp_path / "oom.pickle", request=request)
    return dump.make(job, build({"walk_budget": 0, **options}, {}), backend)


def test_protocol_4_and_only_plain_values(tmp_path):
    made = make(tmp_path)
    names = {opcode.name for opcode, _, _ in pickletools.genops(made.path.read_bytes())}
    assert next(pickletools.genops(made.path.read_bytes()))[1] == 4
    assert not names & {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "NEWOBJ", "BYTEARRAY8"}
    assert list(tmp_path.iterdir()) == [made.path]


def test_metadata_is_made_plain():
    class Odd(str):
        pass

    value = {"path": Path("/x"), 3: (1, 2.5, None), "odd": Odd("s"), "deep": {"a": {True}}, (1, 2): torch.ones(1)}
    made = plain(value)
    assert made == {"path": "/x", 3: [1, 2.5, None], "odd": "s", "deep": {"a": [True]}, "(1, 2)": "tensor([1.])"}
    assert type(made["odd"]) is str


def test_nothing_is_ever_overwritten(tmp_path):
    paths = [make(tmp_path).path for _ in range(3)]
    assert [path.name for path in paths] == ["oom.pickle", "2_oom.pickle", "3_oom.pickle"]


def test_nothing_is_overwritten_where_there_are_no_links(tmp_path, monkeypatch):
    def no_links(*_):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    assert [make(tmp_path).path.name for _ in range(2)] == ["oom.pickle", "2_oom.pickle"]


def test_compressed(tmp_path):
    made = make(tmp_path, compress=True)
    assert made.path.name == "oom.pickle.gz"
    assert "oomscope" in pickle.loads(gzip.decompress(made.path.read_bytes()))


def test_a_snapshot_that_fails_leaves_the_segments(tmp_path):
    backend = FakeBackend(recording=True)
    backend.snapshot_error = RuntimeError("stoi")
    made = make(tmp_path, backend)
    payload = pickle.loads(made.path.read_bytes())
    assert made.form == "without traces"
    assert len(payload["segments"]) == 2
    assert payload["device_traces"] == []
    assert payload["oomscope"]["failures"] == ["full: RuntimeError: stoi"]


def test_no_room_for_the_segments_leaves_the_context_as_json(tmp_path, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pickle, "dump", full)
    made = make(tmp_path)
    assert made.form == "context only"
    assert made.path.name == "oom.json"
    assert json.loads(made.path.read_text())["oomscope"]["reason"] == "oom"
    assert list(tmp_path.iterdir()) == [made.path]


def test_no_room_at_all_is_said_with_what_is_known(tmp_path, monkeypatch, capfd):
    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    from oomscope.recording import announcing

    monkeypatch.setattr(writing, "_move", full)
    made = make(tmp_path)
    announcing.tell_oom(made, build({"verdict": 0}, {}))
    assert made.path is None
    assert list(tmp_path.iterdir()) == []
    said = capfd.readouterr().err
    assert "No space left on device" in said
    assert "nothing could be written" in said
    assert "CUDA out of memory on device 0" in said


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_said_at_the_start(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert "is not writable" in writing.why_not_writable(tmp_path)


def test_a_folder_that_cannot_be_made_is_said_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be made" in writing.why_not_writable(tmp_path / "file" / "dumps")


def test_a_part_that_fails_costs_only_itself(tmp_path):
    backend = FakeBackend(recording=True)
    backend.device_name = lambda _: 1 / 0
    key = pickle.loads(make(tmp_path, backend).path.read_bytes())["oomscope"]
    assert key["devices"][0]["name"] is None
    assert key["devices"][0]["total"] == 16 << 30
    assert key["failures"] == ["name: ZeroDivisionError: division by zero"]


def test_the_message_is_filled_in_where_it_was_left_blank(tmp_path):
    path = make(tmp_path).path
    size = path.stat().st_size
    assert pickle.loads(path.read_bytes())["oomscope"]["exception"]["message"].strip() == ""
    message = "CUDA out of memory. " + "é" * 5000
    assert writing.fill_message(path, message)
    found = pickle.loads(path.read_bytes())["oomscope"]["exception"]["message"]
    assert message.startswith(found.strip())
    assert len(found.encode()) == writing.MESSAGE_BYTES
    assert path.stat().st_size == size
    assert not writing.fill_message(path, "again")


def test_file_names(monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setattr("oomscope.recording.process.host", lambda: "node/../7")
    name = writing.file_name("{reason}.{host}.{rank}.{pid}.{sequence}.pickle", "oom", 5)
    assert name == f"oom.node-..-7.3.{os.getpid()}.5.pickle"


def test_secrets_on_the_command_line_are_hidden():
    argv = ["train.py", "--lr=3", "--hf-token=abc", "--password", "xyz", "--wandb_api_key", "k", "tokens.txt"]
    assert hide_secrets(argv) == [
        "train.py",
        "--lr=3",
        "--hf-token=***",
        "--password",
        "***",
        "--wandb_api_key",
        "***",
        "tokens.txt",
    ]


def test_what_a_person_needs_first_comes_first(tmp_path):
    """A dump that is cut off has what oomscope found, then the segments, then as much of the trace as there is."""
    document = pickle.loads(make(tmp_path).path.read_bytes())
    assert list(document)[:2] == ["oomscope", "segments"]
    assert list(document)[-1] == "device_traces"
