"""What kind of file it is, told by its first bytes, and the way to read each."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from oomscope.errors import SnapshotError
from oomscope.model import Snapshot, note
from oomscope.reading.assemble import assemble
from oomscope.reading.category_timelines import TimelineFoundError, of_json
from oomscope.reading.checked import CheckedStream
from oomscope.reading.compression import decompression_errors
from oomscope.reading.html import embedded
from oomscope.reading.instructions import RefusedError
from oomscope.reading.json_text import parse
from oomscope.reading.printable import printable
from oomscope.reading.salvage import Salvaged, cut_of, salvage
from oomscope.reading.source import Source
from oomscope.reading.streaming import UnexpectedError, is_streamable, load_streaming, put_builders
from oomscope.reading.tables import Tables
from oomscope.reading.unpickling import OPEN, CutOffError, SafeUnpickler

_HEAD = 1024
_BOM = b"\xef\xbb\xbf"
_DATABASE = b"SQLite format 3\0"
# Protocols 0 and 1 have no header: MARK, EMPTY_DICT, EMPTY_LIST or GLOBAL stands first.
_OLD_PICKLE = re.compile(rb"[(}\]]|c[\w.]+\n[\w.]+\n")


def read(source: Source) -> Snapshot:
    """The snapshot in `source`; what is before the cut, where it is cut off.

    Raises:
        SnapshotError: it is of another kind, or damaged, or cut off before anything.
        TimelineFoundError: it is no snapshot but a timeline by category.
        UnsafePickleError: it asked to run code.
    """
    head = source.head(_HEAD)
    text = head.removeprefix(_BOM).lstrip()
    if head.startswith(b"\x80"):
        return _read_pickle(source, head)
    if text.startswith((b"{", b"[")):
        return _read_json(source)
    if head.startswith(_DATABASE):
        return _read_database(source)
    if text.startswith(b"<"):
        with embedded(source) as pickled:
            return _read_pickle(pickled, pickled.head(_HEAD))
    if _OLD_PICKLE.match(head):
        return _read_pickle(source, head)
    raise SnapshotError(_stranger(head))


def _read_pickle(source: Source, head: bytes) -> Snapshot:
    if is_streamable(head):
        try:
            return _read_streaming(source)
        except UnexpectedError:
            source.entries = 0
    checked = CheckedStream(source.stream(), source.limits)
    try:
        return assemble(_unpickled(checked, head), Tables())
    except CutOffError as cut:
        found = salvage(cut.levels, OPEN, is_gradual=head.startswith(b"("))
        return _salvaged(found, cut.size, Tables())


def _read_streaming(source: Source) -> Snapshot:
    tables = Tables()
    try:
        document = load_streaming(source.stream(), tables, source)
    except CutOffError as cut:
        found = salvage(cut.levels, OPEN, is_gradual=False)
        if found is not None:
            put_builders(found.document, cut.collectors)
        return _salvaged(found, cut.size, tables)
    return assemble(document, tables)


def _salvaged(found: Salvaged | None, size: int, tables: Tables) -> Snapshot:
    cut = cut_of(found, size)
    if found is None or cut is None:
        raise SnapshotError(
            f"the file is cut off after {size:,} bytes, before the end of its first segment; copy or dump it again."
        )
    return assemble(found.document, tables, cut)


def _unpickled(stream: CheckedStream, head: bytes) -> Any:
    try:
        return SafeUnpickler(stream).load()
    except (CutOffError, MemoryError):
        raise
    except Exception as error:
        if not head.startswith(b"\x80") and _is_text(head) and not _names_something(error):
            raise SnapshotError(_stranger(head)) from error
        if isinstance(error, (SnapshotError, *decompression_errors())):
            raise
        raise SnapshotError(
            f"the file begins like a pickle but is damaged ({printable(str(error), 120)}); copy it again."
        ) from error


def _names_something(error: Exception) -> bool:
    """Whether `error` is about more than an instruction that any text may look like."""
    return isinstance(error, SnapshotError) and not isinstance(error, RefusedError)


def _read_json(source: Source) -> Snapshot:
    contents, _ = source.contents()
    source.limits.check_json(contents)
    try:
        document, found = parse(contents)
    except UnicodeDecodeError as error:
        raise SnapshotError(_stranger(contents[:_HEAD])) from error
    if found is not None:
        return _salvaged(found, len(contents), Tables())
    if (timeline := of_json(document)) is not None:
        raise TimelineFoundError(timeline)
    return assemble(document, Tables())


def _read_database(source: Source) -> Snapshot:
    from oomscope.reading import pt_snap

    contents, _ = source.contents()
    tables = Tables()
    tables.notes.add(note("reading.from_pt_snap"))
    return replace(assemble(pt_snap.document_of(contents, source.limits), tables), schema=pt_snap.SCHEMA)


def _stranger(head: bytes) -> str:
    """What a file is that begins with `head` and is in none of the formats."""
    if not head:
        return "the file is empty: whatever wrote it did not get to its end; dump the snapshot again."
    if head.startswith(b"version https://git-lfs"):
        return "the file is a Git LFS pointer, not the snapshot itself; fetch that with: git lfs pull."
    if head.startswith(b"PK"):
        if b"data.pkl" in head:
            return "this is not a memory snapshot but a checkpoint written by torch.save."
        return "the file is a zip archive; unpack it and name the snapshot in it."
    if head[257:262] == b"ustar":
        return "the file is a tar archive; unpack it and name the snapshot in it."
    if _is_text(head):
        beginning = printable(head.decode(errors="replace"))
        return f"this is not a memory snapshot but plain text, beginning with '{beginning}'."
    return f"this is not a memory snapshot but binary data of an unknown kind, beginning with 0x{head[:8].hex()}."


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        # The last character may have been cut in two.
        if error.start < len(head) - 3:
            return False
        text = head[: error.start].decode()
    return all(character.isprintable() or character in "\t\r\n\x1b" for character in text)
