"""``oomscope explain``: where the log comes from, what is printed, and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import pytest

from oomscope.commands.common.errors import DONE, FAILED, USAGE, run
from oomscope.rendering.explain import SCHEMA

MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 12.25 GiB. GPU 3 has a total capacity of 39.50 GiB"
    " of which 1.25 GiB is free. Including non-PyTorch memory, this process has 38.25 GiB memory in use. Of the"
    " allocated memory 37.00 GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated. If"
    " reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid"
    " fragmentation."
)
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


class Stdin(io.TextIOWrapper):
    def __init__(self, content: bytes, *, terminal: bool = False):
        super().__init__(io.BytesIO(content))
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def document(capsys: pytest.CaptureFixture[str]) -> dict:
    found = json.loads(capsys.readouterr().out)
    VALIDATOR.validate(found)
    return found


def test_a_file_the_message_itself_and_a_pipe_say_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    (folder / "train.log").write_text(f"{MESSAGE}\n", encoding="utf-8")
    found = []
    for arguments in (["train.log"], [MESSAGE], MESSAGE.split(), ["-"], []):
        monkeypatch.setattr("sys.stdin", Stdin(f"{MESSAGE}\n".encode()))
        assert run(["explain", *arguments, "-f", "json"]) == DONE
        found.append(document(capsys)["messages"])
    assert all(messages == found[0] for messages in found)
    (message,) = found[0]
    assert (message["kind"], message["line"], message["device"], message["rank"]) == ("torch-cuda", 1, 3, None)
    assert message["requested"] == round(12.25 * 2**30)
    assert message["off_by"]["requested"] == -(-(2**30) // 200)
    assert message["allowed"] is None


def test_text_says_what_failed_what_is_proven_and_what_to_run(capsys: pytest.CaptureFixture[str]):
    assert run(["explain", MESSAGE]) == DONE
    out = capsys.readouterr().out
    said = " ".join(out.split())
    assert out.startswith("PyTorch on CUDA, device 3: 12.25 GiB requested (line 1)\n")
    assert "49.25 GiB together, more than the whole card (39.50 GiB)" in said
    assert "expandable_segments:True cannot help" in said
    assert out.splitlines()[-1] == "  Next    oomscope run your_script.py"
    assert len(out.splitlines()) <= 15
    assert max(map(len, out.splitlines())) <= 100


def test_markdown_quotes_the_message(capsys: pytest.CaptureFixture[str]):
    assert run(["explain", MESSAGE, "-f", "md"]) == DONE
    out = capsys.readouterr().out
    assert "```text\nCUDA out of memory. Tried to allocate 12.25 GiB." in out
    assert "- Next: `oomscope run your_script.py`" in out


def test_a_log_without_messages_is_no_failure(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "fine.log").write_text("step 1\nstep 2\n", encoding="utf-8")
    assert run(["explain", "fine.log"]) == DONE
    assert capsys.readouterr().out == "No message about memory in 2 lines.\n"
    assert run(["explain", "fine.log", "-f", "json"]) == DONE
    assert document(capsys)["messages"] == []


def test_the_output_goes_where_it_was_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["explain", MESSAGE, "-f", "json", "-o", "found.json"]) == DONE
    VALIDATOR.validate(json.loads((folder / "found.json").read_text(encoding="utf-8")))
    assert run(["explain", MESSAGE, "-f", "json", "-o", "found.json"]) == FAILED
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["nowhere.log", "two words"])
def test_what_is_neither_file_nor_message_is_refused(argument: str, capsys: pytest.CaptureFixture[str]):
    assert run(["explain", argument]) == FAILED
    assert capsys.readouterr().err == (
        f"Error: {argument!r} is neither a file nor a message about memory; name a log file\n"
    )


@pytest.mark.parametrize(
    ("content", "said"), [(b"\x80\x04N.", "oomscope report"), (b"\x1f\x8b\x08", "compressed")], ids=["pickle", "gzip"]
)
def test_a_snapshot_or_archive_is_no_log(folder: Path, content: bytes, said: str, capsys: pytest.CaptureFixture[str]):
    (folder / "oom.pickle").write_bytes(content)
    assert run(["explain", "oom.pickle"]) == FAILED
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_a_folder_is_no_log(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "runs").mkdir()
    assert run(["explain", "runs"]) == FAILED
    assert "name a log file" in capsys.readouterr().err


def test_a_terminal_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr("sys.stdin", Stdin(b"", terminal=True))
    assert run(["explain"]) == USAGE
    assert "quote the message" in capsys.readouterr().err
