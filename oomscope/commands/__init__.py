"""The command line. Commands load when they are called, so that ``oomscope --help`` costs nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import click

from oomscope.version import __version__

COMMANDS = {
    "report": "Explain a snapshot as one HTML file, Markdown, JSON or text.",
    "summary": "Explain a snapshot in one screen of the terminal.",
    "whatif": "Replay a snapshot under other allocator settings.",
    "plan": "Predict peak memory at other shapes, and what fits which card.",
    "diff": "Show what changed from one snapshot to another.",
    "check": "Check a snapshot against a budget.",
    "ranks": "Compare the ranks of a job: who ran out first, who holds more, and where.",
    "triage": "Group many snapshots by what went wrong.",
    "digest": "Write what ranks and triage need of snapshots, as JSON of a few kB each.",
    "run": "Run a Python program and dump a snapshot when GPU memory runs out.",
    "explain": "Say what an out-of-memory message in a log proves; needs no snapshot.",
    "mcp": "Serve tools for agents over standard input and output (Model Context Protocol).",
    "agent-guide": "Print a short guide for agents, as Markdown with the head of a skill.",
    "export": "Convert a snapshot for other tools.",
    "schema": "List the JSON Schemas of oomscope's documents, or print one.",
    "demo": "List the bundled snapshots, or report on one.",
}
"""Each command, which lives in the module of its name as ``command``, with its short help."""


_THREADS = "OPENBLAS_NUM_THREADS"


@contextmanager
def _one_thread() -> Iterator[None]:
    """Within this, numpy loads without a thread for each core that waits, busily, for matrices to multiply.

    Here are none that are worth it. The environment is as before afterwards: `oomscope run` hands it to a program.
    """
    if _THREADS in os.environ:
        yield
        return
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_THREADS]


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, and listed without that."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names in the order in which people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command `cmd_name`, imported now."""
        if cmd_name not in COMMANDS:
            return None
        with _one_thread():
            command = import_module(f"{__name__}.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list of commands, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Explain CUDA out-of-memory errors from PyTorch's memory snapshots.

    SNAPSHOT is a file written by torch.cuda.memory._dump_snapshot(), plain or compressed; - reads standard input.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
