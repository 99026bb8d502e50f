"""Reports on disk: complete or not there at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from oomscope.analysis.findings import Findings
from oomscope.errors import OutputError
from oomscope.rendering.formats import format_of, render


def write_report(
    findings: Findings, path: str | os.PathLike[str], *, title: str | None = None, force: bool = False
) -> Path:
    """Write `findings` as one file: HTML, or by its name Markdown (``.md``), JSON (``.json``) or text (``.txt``).

    Args:
        findings: what `oomscope.analyze` returned.
        path: the file to write.
        title: the title of the report (JSON has none); None: made from the verdict.
        force: overwrite what is there.

    Returns:
        The path of the report.

    Raises:
        OutputError: `path` exists and `force` is false, or it cannot be written.
    """
    refuse_existing(Path(path), force)
    return write_text_atomically(path, render(findings, format_of(path), title), force)


def refuse_existing(path: Path, force: bool) -> None:
    """Raise `OutputError` where `path` exists and may not be overwritten: better before the work than after it."""
    if path.is_dir():
        raise OutputError(f"{path} is a directory; name a file to write")
    if path.exists() and not force:
        raise OutputError(f"{path} already exists; overwrite it with --force (force=True), or name another file")


def write_text_atomically(path: str | os.PathLike[str], text: str, force: bool = False) -> Path:
    """Write `text` to `path` as UTF-8, as `write_bytes_atomically` does."""
    return write_bytes_atomically(path, text.encode("utf-8", "backslashreplace"), force)


def write_bytes_atomically(path: str | os.PathLike[str], content: bytes, force: bool = False) -> Path:
    """Write `content` to `path` by way of a temporary file beside it, so that no half a file is ever seen.

    Raises:
        OutputError: `path` exists and `force` is false, or it cannot be written.
    """
    target = Path(path)
    refuse_existing(target, force)
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".tmp")
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        _give_usual_mode(temporary)
        Path(temporary).replace(target)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise OutputError(f"{target} cannot be written: {error.strerror or error}; choose another place") from error
    return target


def _give_usual_mode(path: str) -> None:
    """Mkstemp makes files that only their owner can read; a report is an ordinary file."""
    if os.name == "posix":
        mask = os.umask(0)
        os.umask(mask)
        Path(path).chmod(0o666 & ~mask)
