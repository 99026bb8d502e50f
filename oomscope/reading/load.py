"""Reading a snapshot, whatever it comes in."""

from __future__ import annotations

import os
from typing import BinaryIO

from oomscope.errors import SnapshotError
from oomscope.model import Snapshot
from oomscope.reading.category_timelines import TimelineFoundError
from oomscope.reading.compression import decompression_errors
from oomscope.reading.formats import read
from oomscope.reading.printable import printable
from oomscope.reading.source import Progress, Source
from oomscope.reading.unpickling import collector_paused


def load(
    source: str | os.PathLike[str] | BinaryIO, *, progress: Progress | None = None, limits: bool = True
) -> Snapshot:
    """Read a memory snapshot, as any release of torch (1.13 and later), torch_npu or XPU writes it.

    Understands pickles of every protocol, JSON, and the HTML pages of ``_memory_viz.py trace_plot`` (torch 2.1+), each
    also compressed with gzip, bzip2, xz or zstd; all told by content. Reading runs no code from the file. Of a file
    that was cut off, everything before the cut is read; `Snapshot.cut` then says what is missing.

    Args:
        source: a path, or a binary file object, which is read from where it stands and left open.
        progress: called now and then with the bytes read, the bytes in all, and the trace entries read so far (0 until
            the end where they cannot be counted earlier).
        limits: whether to refuse a file that unpacks to, or takes, far more memory than snapshots of its size do.

    Raises:
        SnapshotError: the file cannot be read, is damaged or is no snapshot; the message is one sentence on what it is.
        TimelineFoundError: a `SnapshotError` as well: it is a timeline by category, which `oomscope report` shows.
        UnsafePickleError: the file asked to run code; nothing was run.
    """
    with Source(source, progress, limits=limits) as opened, collector_paused():
        try:
            snapshot = read(opened)
        except TimelineFoundError as found:
            raise TimelineFoundError(found.timeline, opened.name) from None
        except SnapshotError as error:
            raise type(error)(f"{opened.name}: {error}") from error.__cause__
        except MemoryError:
            raise SnapshotError(f"{opened.name}: there is not enough memory to read this file.") from None
        except RecursionError:
            raise SnapshotError(f"{opened.name}: the file is nested too deeply for a memory snapshot.") from None
        except EOFError:
            raise SnapshotError(
                f"{opened.name}: the file is cut off: its compressed data end too early; copy it again."
            ) from None
        except decompression_errors() as error:
            reason = printable(str(error), 120)
            raise SnapshotError(f"{opened.name}: the file or its compression is damaged ({reason}).") from error
        opened.entries = snapshot.entries
        opened.finish()
        return snapshot
