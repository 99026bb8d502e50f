"""``oomscope run``: a program under recording, without a change to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click

import oomscope

_LAUNCH = Path(oomscope.__file__).resolve().parent / "recording" / "launch"


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option("-o", "--output-dir", type=click.Path(file_okay=False), help="Where dumps go.")
@click.option("--filename", help="Pattern of {reason}, {host}, {rank}, {pid}, {time} and {sequence}.")
@click.option("--on", multiple=True, type=click.Choice(["oom", "exception", "exit"]), help="When to dump (repeatable).")
@click.option("--history", type=click.Choice(["all", "state"]), help="Keep a history, or only live blocks' stacks.")
@click.option("--stacks", type=click.Choice(["python", "all"]), help="'all' adds C++ frames; dumps then take minutes.")
@click.option("--context", type=click.Choice(["all", "alloc", "state", "none"]), help="Which entries have a stack.")
@click.option("--max-entries", type=int, help="How many of the last entries each device keeps.")
@click.option("--devices", help="The devices to dump, such as 0,1.")
@click.option("--max-dumps", type=int, help="How many OOM dumps to keep; the last is always kept.")
@click.option("--min-interval", type=float, help="Seconds between two OOM dumps.")
@click.option("--walk-budget", type=float, help="Seconds for the search for names and holders; 0 leaves it out.")
@click.option("--sources/--no-sources", default=None, help="Put the lines of source that a dump names into it.")
@click.option("--verdict", type=float, help="Seconds for the analysis on the spot; 0 leaves it out.")
@click.option("--report/--no-report", default=None, help="Have the HTML report made, without the GPU.")
@click.option("--compress/--no-compress", default=None, help="Write dumps gzipped.")
@click.option("--ranks", help="The ranks that record, such as 0,8.")
@click.option("--stagger", type=float, help="Seconds each local rank waits longer than the one before it.")
@click.option("--signal", "signal_name", help="The signal that asks for a snapshot; 'none' for none.")
@click.option("--metadata", help="A JSON object to keep in the dump.")
@click.option("-m", "is_module", is_flag=True, help="PROGRAM is a module, as with python -m.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM [ARGS]...")
def run(is_module: bool, program: tuple[str, ...], **options: object) -> None:
    """Run a Python program and dump GPU memory when it runs out.

    The program runs as by python itself: its arguments, tracebacks, signals and exit code are its own. It works behind
    a launcher too: torchrun --nproc-per-node=2 --no-python oomscope run train.py. A signal, SIGUSR1 unless Slurm is
    there, asks for a snapshot. Options not given are taken from OOMSCOPE_* variables.
    """
    command = [sys.executable, *_interpreter_flags(), *(["-m"] if is_module else []), *program]
    _become(command, {**os.environ, **_activation(), **variables(options)})


def variables(options: dict[str, object]) -> dict[str, str]:
    """The options that were given, as the variables that the recorder reads."""
    found = {}
    for name, value in options.items():
        if value in (None, ()):
            continue
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        found[f"OOMSCOPE_{name.removesuffix('_name').upper()}"] = text
    return found


def _activation() -> dict[str, str]:
    paths = [str(_LAUNCH), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    found = {"PYTHONPATH": os.pathsep.join(path for path in paths if path), "OOMSCOPE_RUN": sys.prefix}
    # Slurm sends SIGUSR1 before a job's time is up, and trainers wait for it.
    if "OOMSCOPE_SIGNAL" not in os.environ and "SLURM_JOB_ID" not in os.environ and hasattr(signal, "SIGUSR1"):
        found["OOMSCOPE_SIGNAL"] = "SIGUSR1"
    return found


def _interpreter_flags() -> list[str]:
    """The flags this Python was started with (-O, -u, -X …), so that the program's is started alike."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags + (["-u"] if getattr(sys.stdout, "write_through", False) else [])


def _become(command: list[str], environment: dict[str, str]) -> None:
    """Put the program in this process's place; where there is no such thing, run it and pass on its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execve(command[0], command, environment)  # noqa: S606
    raise SystemExit(subprocess.run(command, env=environment, check=False).returncode)


command = run
