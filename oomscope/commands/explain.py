"""``oomscope explain``: what an out-of-memory message proves, without any snapshot."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from oomscope.commands.common import options
from oomscope.commands.common.output import STDOUT, check_target, write
from oomscope.errors import RequestError

if TYPE_CHECKING:
    from oomscope.commands.common.progress import Progress
    from oomscope.messages import Log

FORMATS = ("text", "md", "json")
_WIDEST = 100
_LONGEST_PATH = 300
_PICKLED = b"\x80"
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


@click.command("explain")
@click.argument("message", nargs=-1, metavar="[FILE|-|MESSAGE]")
@click.option(
    "-f", "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Output format."
)
@options.output_options
@options.debug_option
def command(message: tuple[str, ...], form: str, output: str | None, force: bool) -> None:
    """Say what an out-of-memory message in a log proves; needs no snapshot.

    Reads a log file, standard input (-), or the message itself, quoted. Finds messages of PyTorch (CUDA, ROCm, XPU,
    MPS, NPU), the driver, cuBLAS, cuDNN, NCCL, host memory, vLLM, SGLang, JAX, TensorFlow and the kernel, whatever
    prefixes, colours and line breaks stand between.
    """
    check_target(output, force=force, source=message[0] if len(message) == 1 and _existing(message[0]) else None)
    log = _read(message)
    from oomscope.rendering.explain import to_json, to_markdown, to_text

    if form == "text":
        text = to_text(log, min(shutil.get_terminal_size().columns, _WIDEST))
    else:
        text = to_json(log) if form == "json" else to_markdown(log)
    write(text, output, force=force)


def _read(message: tuple[str, ...]) -> Log:
    """The messages in what the arguments name: nothing or ``-`` is standard input.

    Raises:
        UsageError: there is no argument, and standard input is a terminal.
        RequestError: there is no such file, and the argument is no message either.
    """
    from oomscope.messages import read_log

    if message in ((), (STDOUT,)):
        if not message and sys.stdin.isatty():
            raise click.UsageError("Name a log file, quote the message, or pipe a log in.", click.get_current_context())
        return _told(_checked(sys.stdin.buffer, "standard input"), 0)
    text = " ".join(message)
    if len(message) == 1 and (path := _existing(text)) is not None:
        try:
            with path.open("rb") as file:
                return _told(_checked(file, str(path)), path.stat().st_size)
        except OSError as error:
            raise RequestError(f"{path} cannot be read: {error.strerror or error}; name a log file") from error
    log = read_log(io.BytesIO(text.encode("utf-8", "surrogateescape")))
    if not log.messages and "\n" not in text and len(text) < _LONGEST_PATH:
        raise RequestError(f"{text!r} is neither a file nor a message about memory; name a log file")
    return log


def _told(file: BinaryIO, total: int) -> Log:
    """The messages in `file` of `total` bytes (0: not known), with progress where that takes long."""
    from oomscope.commands.common.progress import Progress
    from oomscope.messages import read_log

    with Progress() as progress:
        return read_log(_Metered(file, total, progress))


class _Metered:
    """A file that tells how far it has been read."""

    def __init__(self, file: BinaryIO, total: int, progress: Progress) -> None:
        self._file, self._total, self._progress, self._done = file, total, progress, 0

    def read(self, size: int, /) -> bytes:
        piece = self._file.read(size)
        self._done += len(piece)
        self._progress.read(self._done, self._total, 0)
        return piece


def _existing(text: str) -> Path | None:
    """`text` as the path of something that is there."""
    try:
        path = Path(text)
        return path if text.strip() and path.exists() else None
    except (OSError, ValueError):
        return None


def _checked(file: BinaryIO, name: str) -> BinaryIO:
    """`file`, unless it is a snapshot or compressed: their bytes hold no message.

    Raises:
        RequestError: it is.
    """
    buffered = file if isinstance(file, io.BufferedReader) else io.BufferedReader(file)  # type: ignore[type-var]
    head = buffered.peek(8)[:8]
    if head.startswith(_PICKLED):
        raise RequestError(f"{name} is a pickle, not a log; for a snapshot run: oomscope report {name}")
    if head.startswith(_PACKED):
        raise RequestError(f"{name} is compressed; unpack it first, as in: zcat {name} | oomscope explain -")
    return buffered
