"""Snapshots that were asked about lately, read once and analysed once for each question."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from oomscope.commands.common.pipeline import QUICK_ENTRIES
from oomscope.errors import RequestError, SnapshotError

if TYPE_CHECKING:
    from oomscope.analysis import Findings
    from oomscope.analysis.study import DeviceStudy
    from oomscope.model import Snapshot
    from oomscope.redaction.aliases import Aliases

_MOST_OPEN = 3
"""Snapshots kept: two are compared, and three make a plan."""
_MOST_FINDINGS = 4

_WHAT_IT_IS = re.compile(r"(this is (?:not a memory snapshot but|a web page)[^'\"(:,0-9]*).*", re.DOTALL)
"""What kind of file it is, and then what is in it: keys, a title, its first words."""

Key = tuple[str, int, int]


@dataclass(slots=True)
class _Open:
    snapshot: Snapshot
    findings: OrderedDict[tuple[str | int, int | None], Findings] = field(default_factory=OrderedDict)


class OpenedSnapshots:
    """Opens files by their paths.

    Args:
        roots: folders in which a file must lie; none: it may lie anywhere.
        redact: whether names are replaced by aliases, the same in all files.
    """

    def __init__(self, roots: tuple[Path, ...] = (), *, redact: bool = False) -> None:
        self._roots = tuple(root.resolve() for root in roots)
        self._redact = redact
        self._aliases: Aliases | None = None
        self._open: OrderedDict[Key, _Open] = OrderedDict()
        self.lock = threading.RLock()
        """Held while a question is answered: two at once would read the same file twice."""

    @property
    def redacts(self) -> bool:
        """Whether names are replaced by aliases."""
        return self._redact

    def path(self, name: str) -> Path:
        """The file `name`.

        Raises:
            RequestError: it is no regular file, or lies in none of the folders.
        """
        try:
            path = Path(name).expanduser().resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            raise RequestError(f"{name!r}: there is no such file; give the path of a snapshot") from None
        if self._roots and not any(path.is_relative_to(root) for root in self._roots):
            folders = ", ".join(map(str, self._roots))
            raise RequestError(f"{name!r} lies outside the folders that this server may read: {folders}")
        if not path.is_file():
            raise RequestError(f"{name!r} is no file; give the path of a snapshot")
        return path

    def snapshot(self, name: str) -> Snapshot:
        """The snapshot in the file `name`."""
        return self._opened(name).snapshot

    def findings(self, name: str, at: str | int = "auto", device: int | None = None) -> Findings:
        """The findings about the file `name`; the verdict rests on a replay where that is quick."""
        opened = self._opened(name)
        if (at, device) not in opened.findings:
            from oomscope.analysis import analyze

            quick = opened.snapshot.entries <= QUICK_ENTRIES
            opened.findings[at, device] = analyze(opened.snapshot, at=at, device=device, whatif=quick, whatif_seconds=0)
            while len(opened.findings) > _MOST_FINDINGS:
                opened.findings.popitem(last=False)
        return opened.findings[at, device]

    def study(self, name: str, device: int | None = None) -> DeviceStudy:
        """The study of a device of the file `name`: the one asked for, else the one of the verdict."""
        found = self.findings(name, "auto", device)
        if found.main is None:
            raise RequestError(f"{name}: the snapshot holds no device, so there is nothing to replay")
        return found.main.study

    def _opened(self, name: str) -> _Open:
        path = self.path(name)
        status = path.stat()
        key = str(path), status.st_mtime_ns, status.st_size
        if key not in self._open:
            snapshot = _loaded(path)
            self._open[key] = _Open(self._redacted(snapshot) if self._redact else snapshot)
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(key)
        return self._open[key]

    def _redacted(self, snapshot: Snapshot) -> Snapshot:
        from oomscope.redaction.aliases import Aliases
        from oomscope.redaction.snapshot import redact

        self._aliases = self._aliases or Aliases()
        return redact(snapshot, self._aliases)[0]


def _loaded(path: Path) -> Snapshot:
    """The snapshot in `path`.

    Raises:
        SnapshotError: it is none; what the file says instead is left out, for it may be anything.
    """
    from oomscope.reading import load

    try:
        return load(path)
    except SnapshotError as error:
        raise SnapshotError(_WHAT_IT_IS.sub(lambda match: f"{match[1].rstrip()}.", str(error))) from None
