"""Lines of source for the places that the dump names, so that a report can show them on a machine without the program.

Only what this process has imported, or keeps in `linecache` (a notebook's cells, generated code), is read, and only
while a few tens of milliseconds last.
"""

from __future__ import annotations

import io
import linecache
import os
import re
import stat
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from pathlib import PurePath
from time import monotonic
from typing import Any

from oomscope.recording.census.roots import is_library, is_own

_MOST_PLACES = 400
"""Lines with their neighbours: some 60 kB of dump."""
_MOST_SECONDS = 0.03
_MOST_BYTES = 4_000_000  # of one file; longer ones are data or generated
_LONGEST_LINE = 200
_NEIGHBOURS = 1  # lines before and after
_MOST_BLOCKS = 4000  # live ones, largest first; smaller ones seldom tell of another place
_MOST_STACKS = 300  # of these blocks, by their bytes
_MOST_OF_A_THREAD = 8  # places of one thread that is not the failing one
_MOST_HOLDERS, _MOST_STORING = 8, 3  # the largest objects, and lines for each that store into it
_PACKAGES = ("site-packages", "dist-packages")
_SECRET = re.compile(
    r"(?i)((?:api[-_]?key|secret\w*|passw\w*|credential\w*|\w*auth\w*|\w*token)[\"']?\s*[=:]\s*)([\"']).*?\2"
)

_MOST_FILES = 16  # of the reader's own, in which the line that sets a cap is looked for

_STACKS = ("failing", "backward", "main")
Place = tuple[str, int]  # file and line


def collect(
    payload: Mapping[str, Any], key: Mapping[str, Any], *, seconds: float = _MOST_SECONDS
) -> list[dict[str, Any]]:
    """The dump's ``sources``: for each place its line with one line before and one after.

    The reader's own first, then libraries'; of each the most telling place first.

    Args:
        payload: the snapshot, for the stacks of live blocks.
        key: the dump's own key so far.
        seconds: to read for, whatever is still to be read then.
    """
    from oomscope.model import frames, storing  # noqa: F401 - before the time begins; not at start-up: they bring numpy

    started = (key.get("recording") or {}).get("started_us")
    files = _Files(None if started is None else started / 1_000_000)
    found: dict[Place, dict[str, Any]] = {}
    # A library's files are long, and many: on a busy machine the reader's own lines must not wait for them, nor be
    # left out because finding the places took as long as reading may.
    places = sorted(dict.fromkeys(_places(payload, key, files)), key=lambda one: is_library(one[0]))
    end = monotonic() + seconds
    for place in places:
        if len(found) >= _MOST_PLACES or monotonic() > end:
            break
        text = _around(files.lines(place[0]), place)
        if text is not None:
            found[place] = text
    return list(found.values())


def _around(lines: list[str], place: Place) -> dict[str, Any] | None:
    filename, line = place
    if not 1 <= line <= len(lines):
        return None
    first = max(line - _NEIGHBOURS, 1)
    text = [_shown(one) for one in lines[first - 1 : line + _NEIGHBOURS]]
    return {"filename": filename, "line": line, "first": first, "text": text}


def _shown(line: str) -> str:
    # Cut first: a pattern takes its time on a line of a megabyte.
    return _SECRET.sub(r"\1\2***\2", line[:_LONGEST_LINE].rstrip())


class _Files:
    """The lines of files, each read once; an empty list for what must not or cannot be read."""

    def __init__(self, started: float | None) -> None:
        """`started`: seconds since the epoch; a file changed later no longer holds the lines that run."""
        self._started = started
        self._known: dict[str, list[str]] = {}
        self._imported: set[str] | None = None

    def lines(self, filename: str) -> list[str]:
        """All lines of the file."""
        if filename not in self._known:
            try:
                self._known[filename] = self._read(filename)
            except Exception:
                self._known[filename] = []
        return self._known[filename]

    def _read(self, filename: str) -> list[str]:
        cached = linecache.cache.get(filename)
        if cached is not None and len(cached) > 1:
            return list(cached[2])
        if not filename.endswith(".py") or not self._is_imported(filename):
            return []
        # Not through linecache: it would keep the lines, in a process whose memory is somebody else's.
        with open(filename, "rb") as file:  # noqa: PTH123 - quicker, and these are many
            facts = os.fstat(file.fileno())
            changed = self._started is not None and facts.st_mtime > self._started
            if changed or not stat.S_ISREG(facts.st_mode) or facts.st_size > _MOST_BYTES:
                return []
            content = io.BytesIO(file.read(_MOST_BYTES))
        encoding, _ = tokenize.detect_encoding(content.readline)
        text = content.getvalue().decode(encoding, "replace")
        # What str.splitlines() takes for the end of a line is more than what Python does.
        return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def _is_imported(self, filename: str) -> bool:
        if self._imported is None:
            files = (
                vars(module).get("__file__") for module in list(sys.modules.values()) if hasattr(module, "__dict__")
            )
            self._imported = {name for name in files if isinstance(name, str)}
        # A relative name is of the folder in which the program began, which need not be the current one.
        return filename in self._imported and PurePath(filename).is_absolute()


def _places(payload: Mapping[str, Any], key: Mapping[str, Any], files: _Files) -> Iterator[Place]:
    """Places worth a line, the most telling first; places may come again."""
    stacks = key.get("stacks") or {}
    for frames in (*(stacks.get(name) for name in _STACKS), (key.get("autograd") or {}).get("forward")):
        yield from _site_and_callers(frames or ())
    yield from _cap_set(stacks, files)
    holders = [row for row in key.get("holders", []) if row.get("at") or row.get("stores")]
    yield from _all(row["at"] for row in holders if row.get("at"))
    for row in holders[:_MOST_HOLDERS]:
        yield from _stores(row, files)
    yield from _belongings_stored(key, files)
    for row in [one for one in key.get("unread", []) if one.get("at")][:_MOST_HOLDERS]:
        yield row["at"]["filename"], row.get("loop") or row["at"]["line"]
    for frames in _live_stacks(payload):
        yield from _site_and_callers(frames)
    for thread in stacks.get("threads") or []:
        yield from islice(_site_and_callers(thread["frames"]), _MOST_OF_A_THREAD)
    for name in _STACKS:
        yield from _all(stacks.get(name) or ())


def _cap_set(stacks: Mapping[str, Any], files: _Files) -> Iterator[Place]:
    """Where a file of the reader's own, named in a stack, caps the process's memory."""
    from oomscope.model.storing import sets_a_cap

    for filename in _own_files(stacks):
        for number, text in enumerate(files.lines(filename), 1):
            if sets_a_cap(text):
                yield filename, number


def _belongings_stored(key: Mapping[str, Any], files: _Files) -> Iterator[Place]:
    """The lines that store the largest models and optimizers that lie in other objects: ``self.best = fitted``."""
    from oomscope.model.storing import is_belonging, storing_lines

    rows = [one for one in key.get("holders", []) if not one.get("at") and is_belonging(one.get("holder") or "")]
    for row in rows[:_MOST_HOLDERS]:
        for filename in _own_files(key.get("stacks") or {}):
            lines = dict(enumerate(files.lines(filename), 1))
            for number in storing_lines(row["holder"], row.get("kind") or "", lines)[:_MOST_STORING]:
                yield filename, number


def _own_files(stacks: Mapping[str, Any]) -> list[str]:
    """The reader's own files that the stacks name."""
    frames = [frame for name in _STACKS for frame in stacks.get(name) or ()]
    return list(dict.fromkeys(frame["filename"] for frame in frames if not is_library(frame["filename"])))[:_MOST_FILES]


def _stores(row: Mapping[str, Any], files: _Files) -> Iterator[Place]:
    """The lines of the function that holds an object, of its module, or of its class, that store into it.

    Where none does, those that call what it is an attribute of.
    """
    from oomscope.model.storing import calling_lines, storing_lines

    yield from _all(row.get("stores") or ())
    at = row.get("at")
    if at is None or is_library(at["filename"]):
        return
    filename = at["filename"]
    lines = dict(enumerate(files.lines(filename), 1))
    told = row.get("holder") or "", row.get("kind") or ""
    found = storing_lines(*told, lines) or (() if row.get("stores") else calling_lines(*told, lines))
    for number in found[:_MOST_STORING]:
        yield filename, number


def _all(frames: Iterable[Mapping[str, Any]]) -> Iterator[Place]:
    for frame in frames:
        yield frame["filename"], frame["line"]


def _site_and_callers(frames: Iterable[Mapping[str, Any]]) -> Iterator[Place]:
    """The innermost frame outside torch and the standard library, and whatever is the reader's own."""
    has_site = False
    for frame in frames:
        filename = frame["filename"]
        if is_own(filename) or _is_plumbing(filename):
            continue
        if not has_site or not is_library(filename):
            yield filename, frame["line"]
        has_site = True


def _is_plumbing(filename: str) -> bool:
    parts = PurePath(filename).parts
    package = next((parts[at + 1] for at, part in enumerate(parts[:-1]) if part in _PACKAGES), None)
    return package == "torch" if package is not None else is_library(filename)


def _live_stacks(payload: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The stacks of the largest live blocks, by the bytes that each stack made."""
    live = [
        (block["size"], block["frames"])
        for segment in payload.get("segments", [])
        for block in segment["blocks"]
        if block["state"] != "inactive" and block.get("frames")
    ]
    live.sort(key=itemgetter(0), reverse=True)
    known: dict[tuple[int, ...], tuple[int, list[dict[str, Any]]]] = {}
    for size, frames in live[:_MOST_BLOCKS]:
        # torch writes each frame once, but a list of them for every allocation.
        stack = tuple(map(id, frames))
        known[stack] = (known[stack][0] + size if stack in known else size, frames)
    for _, frames in sorted(known.values(), key=itemgetter(0), reverse=True)[:_MOST_STACKS]:
        yield frames
