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
@click.option("-o", "--output-dir", type=click.Path(file_okay=False), help="Folder for dumps.")
@click.option("--filename", help="File name pattern with {reason}, {host}, {rank}, {pid}, {time} and {sequence}.")
@click.option(
    "--on",
    multiple=True,
    type=click.Choice(["oom", "exception", "exit", "peers"]),
    help="When to dump (repeatable); 'peers' is when this rank is ended because another one failed.",
)
@click.option(
    "--history", type=click.Choice(["all", "state"]), help="Keep the whole history, or only the stacks of live blocks."
)
@click.option(
    "--stacks", type=click.Choice(["python", "all"]), help="'all' adds C++ frames; dumping then takes minutes."
)
@click.option("--context", type=click.Choice(["all", "alloc", "state", "none"]), help="Which entries get a stack.")
@click.option("--max-entries", type=int, help="Entries to keep per device; older ones are overwritten.")
@click.option(
    "--all-threads/--one-thread", default=None, help="Note record_function ranges of every thread (torch 2.8+)."
)
@click.option("--compile-context/--no-compile-context", default=None, help="Note torch.compile's regions (torch 2.8+).")
@click.option("--pinned/--no-pinned", default=None, help="Record pinned host memory, too (torch 2.14+).")
@click.option("--fx-traces/--no-fx-traces", default=None, help="Add the lines that torch.fx made its code from.")
@click.option("--devices", help="Devices to dump, such as 0,1.")
@click.option("--max-dumps", type=int, help="OOM dumps to keep; the last one is always kept.")
@click.option("--min-interval", type=float, help="Least time between two OOM dumps of the same lines, in seconds.")
@click.option("--walk-budget", type=float, help="Seconds to search for names and holders of tensors; 0 disables.")
@click.option("--write-budget", type=float, help="Seconds to write a dump; then one without traces is tried.")
@click.option("--sources/--no-sources", default=None, help="Include the lines of source code that the dump names.")
@click.option("--verdict", type=float, help="Seconds for the analysis on the spot; 0 disables.")
@click.option("--report/--no-report", default=None, help="Also write the HTML report, without using the GPU.")
@click.option("--compress/--no-compress", default=None, help="Write gzipped dumps.")
@click.option("--ranks", help="Ranks that record, such as 0,8.")
@click.option("--stagger", type=float, help="Seconds that each local rank waits longer than the previous one.")
@click.option("--signal", "signal_name", help="Signal that requests a snapshot; 'none' disables.")
@click.option("--peer-signals", help="Signals that end a rank, with --on peers; SIGTERM by default.")
@click.option("--grace", type=float, help="Seconds that a rank which is being ended has for its dump.")
@click.option(
    "--series",
    multiple=True,
    type=click.Choice(["jsonl", "tensorboard", "wandb", "mlflow"]),
    help="Where figures of each step go while the program runs (repeatable).",
)
@click.option("--series-interval", type=float, help="Seconds between two rows there; 0 is a row per step.")
@click.option("--metadata", help="JSON object to store in the dump.")
@click.option("-m", "is_module", is_flag=True, help="PROGRAM is a module, as in python -m.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM [ARGS]...")
def run(is_module: bool, program: tuple[str, ...], **options: object) -> None:
    """Run a Python program and dump a snapshot when GPU memory runs out.

    The program runs as under python itself: arguments, tracebacks, signals and exit code are unchanged. It also works
    behind a launcher: torchrun --nproc-per-node=2 --no-python oomscope run train.py. A signal (SIGUSR1, except under
    Slurm) requests a snapshot. Options that are not given are read from OOMSCOPE_* variables.
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
