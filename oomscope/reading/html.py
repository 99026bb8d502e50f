"""The HTML pages that ``torch/cuda/_memory_viz.py trace_plot`` writes: since torch 2.1 they carry the whole pickle."""

from __future__ import annotations

import base64
import binascii
import io
import re

from oomscope.errors import SnapshotError
from oomscope.reading.category_timelines import TimelineFoundError, of_page
from oomscope.reading.printable import printable
from oomscope.reading.source import Source

_EMBEDDED = re.compile(rb'"base64"\s*:\s*"([^"]*)("?)')
_TITLE = re.compile(rb"<title[^>]*>\s*([^<]{1,200})", re.IGNORECASE)


def embedded(source: Source) -> Source:
    """The pickle that a page carries. Padding behind its end is harmless.

    Raises:
        SnapshotError: it carries none.
        TimelineFoundError: it carries a timeline by category.
    """
    page, _ = source.contents()
    match = _EMBEDDED.search(page)
    if match is not None and (match[2] or match[1]):
        # Of a page that was cut off, what stands for whole bytes.
        text = match[1] if match[2] else match[1][: len(match[1]) // 4 * 4]
        try:
            return Source(io.BytesIO(base64.b64decode(text)), limits=source.limits.is_on)
        except binascii.Error as error:
            raise SnapshotError(f"the page's embedded snapshot is damaged ({printable(str(error))}).") from error
    if b"alloc_data" in page:
        raise SnapshotError(
            "this is a trace_plot page of torch 2.0, which holds a drawing and not the snapshot; "
            "it cannot be turned back: load the pickle that it was made from."
        )
    if b'"base64"' in page:
        raise SnapshotError("the page is cut off within its embedded snapshot; copy it again.")
    if (timeline := of_page(page)) is not None:
        raise TimelineFoundError(timeline)
    title = _TITLE.search(page)
    about = f" titled '{printable(title[1].decode(errors='replace').strip())}'" if title else ""
    raise SnapshotError(f"this is a web page{about} that holds no memory snapshot.")
