"""Reports on disk: complete or not there at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
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
    """Write `content` to `path`, as `write_chunks_atomically` does."""
    return write_chunks_atomically(path, (content,), force)


def write_chunks_atomically(path: str | os.PathLike[str], chunks: Iterable[bytes], force: bool = False) -> Path:
    """Write `chunks` to `path` by way of a temporary file beside it, so that no half a file is ever seen.

    Raises:
        OutputError: `path` exists and `force` is false, or it cannot be written.
    """
    target = Path(path)
    refuse_existing(target, force)
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".tmp")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(chunks)
        _give_usual_mode(temporary)
        temporary.replace(target)
        temporary = None
    except OSError as error:
        raise OutputError(f"{target} cannot be written: {error.strerror or error}; choose another place") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
    return target


def _give_usual_mode(path: Path) -> None:
    """Mkstemp makes files that only their owner can read; a report is an ordinary file."""
    if os.name == "posix":
        mask = os.umask(0)
        os.umask(mask)
        path.chmod(0o666 & ~mask)
