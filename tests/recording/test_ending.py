"""The end of a program that runs under `oomscope run`, told from an error that a console shows and forgets."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

START = """
import sys
from oomscope.recording.launching import _Ending

class Session:
    def leave(self, error):
        print("left with", type(error).__name__, flush=True)

ending = _Ending(Session())
sys.excepthook = ending.on_error
"""
CONSOLE = """
import code
code.InteractiveConsole({}).runsource("raise ValueError(1)", "<lab>", "exec")
print("goes on", flush=True)
ending.at_exit()
"""
UNHANDLED = """
raise ValueError(1)
"""
CHAINED = """
ours = sys.excepthook
def hook(kind, error, trace):
    ours(kind, error, trace)
sys.excepthook = hook
raise ValueError(1)
"""
THREADED = """
import threading
def run():
    sys.excepthook(*sys.exc_info())
def call():
    try:
        raise ValueError(1)
    except ValueError:
        run()
thread = threading.Thread(target=call)
thread.start()
thread.join()
print("goes on", flush=True)
ending.at_exit()
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (CONSOLE, ["goes on", "left with NoneType"]),
        (THREADED, ["goes on", "left with NoneType"]),
        (UNHANDLED, ["left with ValueError"]),
        (CHAINED, ["left with ValueError"]),
    ],
    ids=["console", "thread", "unhandled", "chained"],
)
@pytest.mark.parametrize("how", ["text", "file", "module"])
def test_only_the_end_of_the_program_ends_the_recording(tmp_path, program, said, how):
    (tmp_path / "it.py").write_text(dedent(START + program))
    arguments = {"text": ["-c", dedent(START + program)], "file": ["it.py"], "module": ["-m", "it"]}[how]
    done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == said, done.stderr
    assert "ValueError: 1" in done.stderr
