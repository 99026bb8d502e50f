"""The lines of source around a line of code: those that the dump brought, or those of a folder that the reader names.

A bare snapshot names files of any machine. Nothing on this one is opened unless the reader gave a folder, and then
only what lies in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from oomscope.frozen import frozen
from oomscope.model import FrameKind, Snapshot, frame_kind, package_path
from oomscope.model.frames import slashes

AROUND = 1
"""Lines shown before and after the one that is named."""
LARGEST_FILE = 4_000_000
"""Bytes; no one writes larger source by hand."""
_TAB = 4


@frozen
class Excerpt:
    """Consecutive lines of one file; `lines` are (number, text, whether it is the one asked for), indented alike."""

    filename: str
    lines: tuple[tuple[int, str, bool], ...]

    @property
    def text(self) -> str:
        """The line that was asked for, without its indentation."""
        return next((text.strip() for _, text, is_it in self.lines if is_it), "")


class Sources:
    """Looks lines of source up; each is None where it is not known.

    Args:
        snapshot: its dump may carry lines; None: no dump is asked.
        folder: where the program's files lie; None: no file is opened.
    """

    def __init__(self, snapshot: Snapshot | None = None, folder: Path | None = None) -> None:
        recorded = snapshot.recorded.sources if snapshot is not None else ()
        self._told = {(one.filename, one.line): (one.first, one.text) for one in recorded}
        self._folder = folder.resolve() if folder is not None else None
        self._read = lru_cache(maxsize=256)(self._lines_of)

    def around(self, filename: str, line: int, count: int = AROUND) -> Excerpt | None:
        """The line `line` of `filename`, with at most `count` lines before and after it."""
        first, text = self._told.get((filename, line)) or self._beside(filename, line)
        if not text and self._folder is not None:
            first, text = 1, self._read(filename)
        if not first <= line < first + len(text):
            return None
        low, high = max(first, line - count), min(first + len(text) - 1, line + count)
        shown = _dedented([text[number - first] for number in range(low, high + 1)])
        if not shown[line - low].strip():
            return None  # the file is not the one that ran
        lines = [(low + at, one, low + at == line) for at, one in enumerate(shown)]
        while not lines[0][1].strip():
            del lines[0]
        while not lines[-1][1].strip():
            del lines[-1]
        return Excerpt(filename, tuple(lines))

    def _beside(self, filename: str, line: int) -> tuple[int, tuple[str, ...]]:
        """Lines that the dump carries for the sake of another one, where this one is among them."""
        for (name, _), (first, text) in self._told.items():
            if name == filename and first <= line < first + len(text):
                return first, text
        return 1, ()

    @property
    def files(self) -> tuple[str, ...]:
        """The files of which the dump carries lines."""
        return tuple(dict.fromkeys(filename for filename, _ in self._told))

    def known(self, filename: str) -> dict[int, str]:
        """All lines of `filename` that are known, by their numbers."""
        if self._folder is not None and (read := self._read(filename)):
            return dict(enumerate(read, 1))
        return {
            first + at: line
            for (name, _), (first, text) in self._told.items()
            if name == filename
            for at, line in enumerate(text)
        }

    def _lines_of(self, filename: str) -> tuple[str, ...]:
        assert self._folder is not None
        for suffix in _suffixes(filename):
            path = self._inside(suffix)
            if path is not None:
                try:
                    return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
                except OSError:
                    return ()
        return ()

    def _inside(self, suffix: str) -> Path | None:
        """The file `suffix` of the folder, if it is there and no link leads out of it."""
        assert self._folder is not None
        try:
            path = (self._folder / suffix).resolve(strict=True)
            fits = path.is_relative_to(self._folder) and path.is_file() and path.stat().st_size <= LARGEST_FILE
        except (OSError, ValueError, RuntimeError):  # missing, unreadable, a NUL in its name, a circle of links
            return None
        return path if fits else None


def _suffixes(filename: str) -> Iterator[str]:
    """Ends of the path `filename`, longest first; of an installed library only the one that begins with its package."""
    packaged = package_path(filename)
    if packaged is not None:
        parts = packaged.split("/")
        yield from () if ".." in parts else (packaged,)
        return
    if frame_kind(filename) not in (FrameKind.OWN, FrameKind.LIBRARY):
        return
    parts = [part for part in slashes(filename).split("/") if part not in ("", ".")]
    if ".." in parts:
        return
    if parts and parts[0].endswith(":"):
        del parts[0]
    for start in range(len(parts)):
        yield "/".join(parts[start:])


def _dedented(lines: list[str]) -> list[str]:
    plain = [line.expandtabs(_TAB).rstrip() for line in lines]
    indent = min((len(line) - len(line.lstrip()) for line in plain if line.strip()), default=0)
    return [line[indent:] for line in plain]
