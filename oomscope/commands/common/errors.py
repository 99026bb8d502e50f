"""From exceptions to one line on stderr and an exit code: the one place where that happens."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence

import click

from oomscope.commands import cli
from oomscope.commands.common.options import DEBUG
from oomscope.errors import OomscopeError

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (None: those of the process) and return its exit code."""
    _use_utf8()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    meta: dict[str, object] = {}
    return _guarded(lambda: _invoke(arguments, meta), lambda: bool(meta.get(DEBUG)))


def _invoke(arguments: list[str], meta: dict[str, object]) -> int:
    with cli.make_context("oomscope", arguments) as context:
        try:
            result = cli.invoke(context)
        finally:
            meta.update(context.meta)
    # What is still in the buffer may meet a closed pipe: that has to happen here, where it is caught.
    sys.stdout.flush()
    return result if isinstance(result, int) else DONE


def _guarded(work: Callable[[], int], wants_traceback: Callable[[], bool]) -> int:
    try:
        return work()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.UsageError as error:
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        return _fail(f"{error.format_message().rstrip('.')}{hint}", USAGE)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _leave_pipe()
        return DONE
    except OomscopeError as error:
        _show_traceback(wants_traceback())
        return _fail(str(error), FAILED)
    except MemoryError:
        _show_traceback(wants_traceback())
        return _fail("not enough memory for this snapshot; try a machine with more", FAILED)
    except Exception as error:
        _show_traceback(wants_traceback())
        advice = "please report it with the traceback from --debug"
        return _fail(f"this is a bug in oomscope, not in your file ({type(error).__name__}: {error}); {advice}", FAILED)


def _fail(message: str, code: int) -> int:
    """Print the one line; what came from a file may hold line breaks and terminal escapes."""
    line = "".join(
        character if character.isprintable() else " " if character.isspace() else ascii(character)[1:-1]
        for character in message
    )
    click.echo(f"Error: {line}", err=True)
    return code


def _show_traceback(wanted: bool) -> None:
    if wanted:
        traceback.print_exc()


def _leave_pipe() -> None:
    """The reader has gone (``| head``): let Python's last flush at exit go nowhere instead of failing."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


def _use_utf8() -> None:
    """UTF-8 wherever text goes but to a terminal, whose encoding is its own; never fail on a character."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            encoding = None if stream.isatty() else "utf-8"
            reconfigure(encoding=encoding, errors="backslashreplace")
