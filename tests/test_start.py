"""What a start costs: what it loads, how long that takes beside numpy, and that it leaves the process as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.samples import sample_path

SAMPLE = "oom_fragmentation"
COUNTED = """
import sys
calls = 0
def count(frame, event, argument):
    global calls
    calls += event == "call"
sys.setprofile(count)
from oomscope.commands.common.errors import run
assert run(sys.argv[1:]) == 0
sys.setprofile(None)
print(len(sys.modules), calls)
"""
UNUSED = {
    "asyncio", "email", "importlib.metadata", "jinja2", "matplotlib", "multiprocessing", "numpy.ma", "numpy.random",
    "oomscope.export", "oomscope.recording", "oomscope.redaction", "rich.progress", "sqlite3", "torch",
}  # fmt: skip
"""What a summary has no need of; numpy's masked arrays alone cost a tenth of numpy itself."""


def loaded_by(program: str) -> set[str]:
    """The modules of a fresh process that has run `program`."""
    code = f"{program}\nimport sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def after(arguments: list[str], told: str, environment: Mapping[str, str] | None = None) -> Any:
    """What the expression `told` is in a fresh process that has run the command line `arguments`."""
    code = (
        "import json, os, sys\nfrom oomscope.commands.common.errors import run\n"
        f"assert run({arguments!r}) == 0\nprint(json.dumps({told}))"
    )
    known = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**known, **(environment or {})}
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", [SAMPLE, "oom_activations", "train_ok"])
def test_a_summary_loads_nothing_that_it_has_no_need_of(name: str) -> None:
    loaded = set(after(["summary", str(sample_path(name))], "sorted(sys.modules)"))
    # Numpy 1 loads its masked arrays whoever asks for it.
    assert loaded & UNUSED - loaded_by("import numpy") == set()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted by Linux")
def test_numpy_starts_no_threads_for_matrices() -> None:
    assert after(["summary", str(sample_path(SAMPLE))], "len(os.listdir('/proc/self/task'))") == 1


@pytest.mark.parametrize("said", [None, "2"])
def test_the_environment_is_as_it_was(said: str | None) -> None:
    environment = {} if said is None else {"OPENBLAS_NUM_THREADS": said}
    assert after(["schema"], "os.environ.get('OPENBLAS_NUM_THREADS')", environment) == said


@pytest.mark.parametrize(
    ("arguments", "modules", "calls"), [(("summary",), 520, 340_000), (("report", "-o", "small.html"), 780, 1_250_000)]
)
def test_a_small_snapshot_is_told_with_little_work(
    arguments: tuple[str, ...], modules: int, calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules loaded beside numpy's and calls of Python functions: unlike seconds, the same on a busy machine.

    `make bench` holds the time that they take against the goals, 2.1 and 5 times that of `import numpy`.
    """
    monkeypatch.chdir(tmp_path)
    command, *options = arguments
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, command, str(sample_path(SAMPLE)), *options],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded, called = map(int, done.stdout.splitlines()[-1].split())
    assert 100 < loaded - len(loaded_by("import numpy")) < modules
    assert 10_000 < called < calls, called
