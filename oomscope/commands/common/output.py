"""Where results go: standard output, or a file that is complete or not there at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

STDOUT = "-"

_PACKED = {".gz", ".bz2", ".xz", ".zst"}
_FORMATS = {".pickle", ".pkl", ".json", ".html"}


def stem(snapshot: str) -> str:
    """The name of `snapshot` without folder, format and compression: ``runs/oom.rank0.pickle.xz`` is ``oom.rank0``."""
    if snapshot == STDOUT:
        return "snapshot"
    name = Path(snapshot).name
    for suffixes in (_PACKED, _FORMATS):
        if Path(name).suffix.lower() in suffixes:
            name = Path(name).stem
    return name or "snapshot"


def default_output(snapshot: str, suffix: str) -> str:
    """Where a result goes without -o: to a file named after `snapshot`, here; for stdin to stdout, as of any filter.

    Raises:
        UsageError: that is a terminal, where nobody can read such a result.
    """
    if snapshot != STDOUT:
        return f"{stem(snapshot)}{suffix}"
    if sys.stdout.isatty():
        raise click.UsageError(
            "The result would go to this terminal; name a file with -o, or redirect the output.",
            click.get_current_context(),
        )
    return STDOUT


def check_target(output: str | None, *, force: bool, source: str | None = None) -> None:
    """Refuse `output` before the work rather than after it.

    Raises:
        OutputError: it exists and `force` is false, or it cannot be a file.
        RequestError: it is the snapshot itself.
    """
    if output is None or output == STDOUT:
        return
    from oomscope.errors import RequestError
    from oomscope.rendering.write import refuse_existing

    target = Path(output)
    if source and source != STDOUT and target.exists() and Path(source).exists() and target.samefile(source):
        raise RequestError(f"{target} is the snapshot itself; choose another output")
    refuse_existing(target, force)


def write(text: str, output: str | None, *, force: bool) -> None:
    """Write `text` to the file `output`, or to stdout where that is None or ``-``."""
    if output in (None, STDOUT) and sys.stdout.isatty():
        click.echo(text, nl=False)
    else:
        # Bytes, so that line ends are the same on every system.
        write_binary(text.encode("utf-8", "backslashreplace"), output, force=force)


def write_or_show(content: RenderableType, output: str | None, *, force: bool) -> None:
    """Write text, or show what rich can: in a terminal with its width and colours, elsewhere as plain text."""
    if isinstance(content, str):
        write(content, output, force=force)
        return
    from rich.console import Console

    from oomscope.rendering.text.terminal import WIDEST, WIDTH, plain

    console = Console(highlight=False, emoji=False, markup=False, legacy_windows=False)
    console.width = min(console.width, WIDEST)
    to_stdout = output in (None, STDOUT)
    if to_stdout and console.is_terminal:
        console.print(content)
    else:
        write(plain(content, console.width if to_stdout else WIDTH), output, force=force)


def write_binary(content: bytes, output: str | None, *, force: bool) -> None:
    """Write `content` to the file `output`, or to stdout where that is None or ``-``."""
    write_chunks((content,), output, force=force)


def write_chunks(chunks: Iterable[bytes], output: str | None, *, force: bool) -> None:
    """Write `chunks` one after the other, as they are made, to the file `output`, or to stdout."""
    if output is None or output == STDOUT:
        for chunk in chunks:
            click.echo(chunk, nl=False)
        return
    from oomscope.rendering.write import write_chunks_atomically

    write_chunks_atomically(output, chunks, force)
    click.echo(f"Wrote {output}", err=True)
