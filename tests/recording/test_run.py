"""``oomscope run``: the program does not notice. Each program is run with and without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="the launcher takes a process's place, as POSIX allows")

PROGRAMS = {
    "arguments": "import sys; print(sys.argv, __name__, __file__, sys.path[0], __spec__)",
    "exit code": "import sys; sys.exit(7)",
    "exit message": "import sys; sys.exit('enough')",
    "traceback": "def inner():\n    return 1 / 0\n\ninner()",
    "a class of main": "import pickle\nclass A: pass\nprint(pickle.loads(pickle.dumps(A())).__class__)",
    "signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(5)",
    "spawned child": (
        "import multiprocessing, os\n"
        "def work(n):\n    print('child', n, flush=True)\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('spawn').Process(target=work, args=(3,))\n"
        "    process.start(); process.join(); print(process.exitcode)"
    ),
    "hook": "import sys\nsys.excepthook = lambda *_: print('mine')\nraise ValueError",
}


def start(arguments, cwd, **environment):
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("OOMSCOPE_", "SLURM_"))}
    variables |= {"PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=variables, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_as_if_python_had_run_it(tmp_path, name):
    (tmp_path / "program.py").write_text(PROGRAMS[name])
    plain = start(["program.py", "--report", "-o", "x"], tmp_path)
    recorded = start(["-m", "oomscope", "run", "--max-dumps", "2", "program.py", "--report", "-o", "x"], tmp_path)
    assert (recorded.returncode, recorded.stdout) == (plain.returncode, plain.stdout)
    assert recorded.stderr == plain.stderr


def test_a_module(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__main__.py").write_text("import sys; print(sys.argv, __name__, __package__)")
    plain = start(["-m", "package", "-m", "y"], tmp_path)
    recorded = start(["-m", "oomscope", "run", "-m", "package", "-m", "y"], tmp_path)
    assert recorded.stdout == plain.stdout != ""


def test_the_environments_own_sitecustomize_still_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('site')")
    (tmp_path / "program.py").write_text("import sitecustomize; print(sitecustomize.__file__)")
    done = start(["-m", "oomscope", "run", "program.py"], tmp_path, PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}")
    # Once for the launcher, once for the program.
    assert done.stdout.splitlines() == ["site", "site", str(tmp_path / "sitecustomize.py")]


@pytest.mark.torch
def test_torch_is_not_imported_before_the_program_does(tmp_path):
    pytest.importorskip("torch", reason="needs torch")
    (tmp_path / "program.py").write_text(
        "import sys, os\nassert 'torch' not in sys.modules\nimport torch\n"
        "print(torch.__spec__.name, 'oomscope.recording.session' in sys.modules, os.environ['OOMSCOPE_SIGNAL'])"
    )
    done = start(["-m", "oomscope", "run", "program.py"], tmp_path)
    assert done.stdout.split() == ["torch", "True", "SIGUSR1"]


def test_slurms_signal_is_left_alone(tmp_path):
    (tmp_path / "program.py").write_text("import os; print(os.environ.get('OOMSCOPE_SIGNAL'))")
    assert start(["-m", "oomscope", "run", "program.py"], tmp_path, SLURM_JOB_ID="1").stdout == "None\n"
    done = start(["-m", "oomscope", "run", "--signal", "none", "program.py"], tmp_path)
    assert done.stdout == "none\n"


def test_nothing_to_run_is_a_usage_error(tmp_path):
    done = start(["-m", "oomscope", "run"], tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_processes_number_is_the_launchers(tmp_path):
    """A launcher signals and waits for the process it started."""
    (tmp_path / "program.py").write_text("import os; print(os.getpid())")
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "oomscope", "run", "program.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stdout=subprocess.PIPE, text=True) as process:
        output, _ = process.communicate(timeout=60)
    assert int(output) == process.pid


def test_importing_the_recorder_imports_no_torch():
    code = "import sys, oomscope.recording; assert not {'torch', 'numpy', 'matplotlib'} & set(sys.modules)"
    assert start(["-c", code], ROOT).returncode == 0


LAUNCH = ROOT / "oomscope" / "recording" / "launch"


@pytest.mark.torch
def test_one_variable_switches_it_on_for_everyone(tmp_path):
    """As an administrator sets it: oomscope is installed nowhere, and nothing is said where there is no GPU."""
    pytest.importorskip("torch", reason="needs torch")
    (tmp_path / "program.py").write_text(
        "import sys\nassert not any(name.startswith('oomscope') for name in sys.modules)\n"
        "import torch\nprint('oomscope.recording.session' in sys.modules, len(sys.path) == len(set(sys.path)))"
    )
    done = start(["program.py"], tmp_path, PYTHONPATH=str(LAUNCH))
    assert (done.returncode, done.stdout, done.stderr) == (0, "True True\n", "")


def test_a_python_that_imports_no_torch_imports_nothing_of_it(tmp_path):
    code = "import sys; print([name for name in sys.modules if 'oomscope' in name or name == 'importlib.abc'])"
    done = start(["-c", code], tmp_path, PYTHONPATH=str(LAUNCH))
    assert (done.stdout, done.stderr) == ("[]\n", "")
