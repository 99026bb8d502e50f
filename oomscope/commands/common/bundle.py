"""A ticket's attachment: the report in every format, with the snapshot, in one zip file."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomscope.analysis import Findings
    from oomscope.model import Snapshot

MOST_BYTES = 25_000_000
"""What GitHub takes as an attachment of a ticket."""
# An entry takes about five bytes; more than this need not be tried.
_MOST_ENTRIES = 6_000_000
# A fixed time, so that the same snapshot gives the same file; zip knows none before 1980.
_TIME = (1980, 1, 1, 0, 0, 0)
# Higher levels take six times as long for snapshots, and gain nothing.
_LEVEL = 6

_README = """\
Made by oomscope {version} from a PyTorch memory snapshot.

report.html      the report; open it in a browser, it loads nothing
report.md        its main points, ready to paste into a ticket
report.json      everything, for programs
{snapshot}
"""
_SNAPSHOT = """\
snapshot.pickle  the snapshot in PyTorch's own format: `oomscope report snapshot.pickle` reads it, and so do
                 https://pytorch.org/memory_viz and `python -m torch.cuda._memory_viz`

{entries}"""
_SOURCES = """
They carry {lines} of the program's source, each with its neighbours; with `--redact` these are left out.
"""


def bundle(findings: Findings, title: str | None = None, *, most_bytes: int = MOST_BYTES) -> bytes:
    """A zip file with the report in three formats, ``snapshot.pickle``, which memory_viz opens, and ``README.txt``.

    Of redacted findings, the snapshot is the redacted one as well. Where it would make the file larger than
    `most_bytes`, only the newest entries of its trace are in it, and ``README.txt`` says how many are not.
    """
    from oomscope.rendering import render_html
    from oomscope.rendering.json_report import render_json
    from oomscope.rendering.markdown import render_markdown

    members = {
        "report.html": render_html(findings, title=title).encode("utf-8", "backslashreplace"),
        "report.md": render_markdown(findings, title=title).encode("utf-8", "backslashreplace"),
        "report.json": render_json(findings).encode(),
    }
    room = most_bytes - len(_zipped({**members, "README.txt": _readme(findings.snapshot, None).encode()})) - 1000
    content, kept = _slim(findings.snapshot, room)
    if content is not None:
        members["snapshot.pickle"] = content
    return _zipped({"README.txt": _readme(findings.snapshot, kept).encode(), **members})


def _zipped(members: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), content, zipfile.ZIP_DEFLATED)
    return sink.getvalue()


def _slim(snapshot: Snapshot, room: int) -> tuple[bytes | None, int | None]:
    """The pickle that takes at most `room` bytes in a zip file, and how many entries it holds; None: none does."""
    longest = max((len(device.trace) for device in snapshot.devices), default=0)
    entries = min(longest, _MOST_ENTRIES)
    content, size = _packed(snapshot, entries)
    if size > room:
        _, least = _packed(snapshot, 0)
        if least > room:
            return None, None
        while size > room:
            # Each time a little less than its share, for entries are not all of one size.
            entries = int(entries * 0.95 * (room - least) / (size - least))
            content, size = _packed(snapshot, entries)
    return content, sum(min(len(device.trace), entries) for device in snapshot.devices)


def _packed(snapshot: Snapshot, entries: int) -> tuple[bytes, int]:
    from oomscope.export import memory_viz, window
    from oomscope.reading.unpickling import collector_paused

    longest = max((len(device.trace) for device in snapshot.devices), default=0)
    with collector_paused():
        content = memory_viz.to_pickle(snapshot if entries == longest else window.newest(snapshot, entries))
    return content, len(_zipped({"snapshot.pickle": content}))


def _readme(snapshot: Snapshot, kept: int | None) -> str:
    from oomscope.units import format_count, plural
    from oomscope.version import __version__

    total = plural(snapshot.entries, "trace entry", "trace entries")
    if kept is None:
        lines = "The snapshot itself is not included: even without its trace it exceeds the size limit for attachments."
    elif kept == snapshot.entries and snapshot.window:
        lines = _SNAPSHOT.format(entries=f"It contains the part of the trace that the reports show, {total}.")
    elif kept == snapshot.entries:
        lines = _SNAPSHOT.format(entries=f"It contains the whole trace, {total}.")
    else:
        left = format_count(snapshot.entries - kept)
        lines = _SNAPSHOT.format(
            entries=f"Its oldest {left} of {total} were dropped to stay below {MOST_BYTES // 10**6} MB; the reports\n"
            "above cover all of them."
        )
    readme = _README.format(version=__version__, snapshot=lines)
    carried = len(snapshot.recorded.sources)
    return readme + _SOURCES.format(lines=plural(carried, "line")) if carried else readme
