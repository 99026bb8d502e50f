"""Snapshots elsewhere, through fsspec: in memory and over HTTP."""

from __future__ import annotations

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from oomscope.commands.common import remote
from oomscope.commands.common.errors import DONE, FAILED, run
from tests.commands.test_commands import one_line_error
from tests.samples import sample_path

fsspec = pytest.importorskip("fsspec", reason="needs fsspec")
NAMES = ("train_ok", "oom_fragmentation")


@pytest.fixture
def bucket():
    files = fsspec.filesystem("memory")
    for rank, name in enumerate(NAMES):
        files.pipe(f"/bucket/job/oom_rank{rank}.pickle.xz", sample_path(name).read_bytes())
    files.pipe("/bucket/job/notes.txt", b"no snapshot")
    yield files
    files.rm("/bucket", recursive=True)


@pytest.fixture
def server(tmp_path: Path):
    pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")
    for rank, name in enumerate(NAMES):
        (tmp_path / f"oom_rank{rank}.pickle.xz").write_bytes(sample_path(name).read_bytes())

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def ranks(capsys: pytest.CaptureFixture[str], *paths: str) -> dict:
    assert run(["ranks", *paths, "-f", "json"]) == DONE
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("path", ["memory://bucket/job", "memory://bucket", "memory://bucket/job/*rank*"])
def test_folders_and_patterns_in_memory(bucket, path: str, capsys: pytest.CaptureFixture[str]):
    found = ranks(capsys, path)
    assert [(one["rank"], one["file"]) for one in found["ranks"]] == [
        (rank, f"memory:///bucket/job/oom_rank{rank}.pickle.xz") for rank in range(2)
    ]
    assert found["first"] == 1


def test_the_figures_are_those_of_local_files(bucket, capsys: pytest.CaptureFixture[str]):
    assert run(["triage", "memory://bucket/job", "-f", "json"]) == DONE
    elsewhere = json.loads(capsys.readouterr().out)["groups"]
    assert run(["triage", *map(str, map(sample_path, NAMES)), "-f", "json"]) == DONE
    here = json.loads(capsys.readouterr().out)["groups"]
    for one in (*elsewhere, *here):
        del one["example"], one["jobs"]
    assert elsewhere == here


def test_digests_elsewhere_are_read_as_such(bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["digest", "memory://bucket/job", "-o", str(tmp_path / "job.digest.json")]) == DONE
    bucket.put_file(str(tmp_path / "job.digest.json"), "/bucket/digests/job.digest.json")
    assert ranks(capsys, "memory://bucket/digests") == ranks(capsys, "memory://bucket/job")


def test_over_http_with_a_folder_and_in_processes(server: str, capsys: pytest.CaptureFixture[str]):
    found = ranks(capsys, f"{server}/oom_rank0.pickle.xz", f"{server}/oom_rank1.pickle.xz?signature=geheim")
    assert [one["file"] for one in found["ranks"]] == [f"{server}/oom_rank{rank}.pickle.xz" for rank in range(2)]
    listed = ranks(capsys, f"{server}/", "--processes", "2")
    assert listed == found


def test_what_is_not_there_is_said_without_secrets(server: str, capsys: pytest.CaptureFixture[str]):
    assert run(["ranks", f"{server.replace('//', '//me:geheim@')}/gone.pickle?signature=geheim"]) == FAILED
    error = one_line_error(capsys)
    assert "gone.pickle" in error
    assert "geheim" not in error
    assert run(["ranks", "memory://nowhere"]) == FAILED
    assert "memory://nowhere" in one_line_error(capsys)


def test_a_bad_file_elsewhere_is_called_by_its_url(bucket, capsys: pytest.CaptureFixture[str]):
    bucket.pipe("/bucket/job/oom_rank2.pickle", b"no snapshot")
    assert run(["ranks", "memory://bucket/job", "--processes", "1", "-f", "json"]) == DONE
    out, err = capsys.readouterr()
    (bad,) = json.loads(out)["bad_files"]
    assert bad["file"] == "memory:///bucket/job/oom_rank2.pickle"
    assert "oomscope-" not in err + bad["error"]


def test_what_is_missing_to_read_it_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    assert run(["ranks", "s3://bucket/job"]) == FAILED
    assert "oomscope[remote]" in one_line_error(capsys)


@pytest.mark.parametrize(
    ("path", "is_one"),
    [("s3://b/x", True), ("C:\\x", False), ("C://x", False), ("/x://y", False), ("hf://datasets/a/b", True)],
)
def test_what_a_url_is(path: str, is_one: bool):
    assert remote.is_url(path) is is_one
