"""What kind of file it is, told by its first bytes, and the way to read each."""

from __future__ import annotations

import re
from typing import Any

from oomscope.errors import SnapshotError, UnsafePickleError
from oomscope.model import Snapshot
from oomscope.reading.assemble import assemble
from oomscope.reading.compression import decompression_errors
from oomscope.reading.html import embedded
from oomscope.reading.printable import printable
from oomscope.reading.source import Source
from oomscope.reading.streaming import CutOffError, UnexpectedError, is_streamable, load_streaming
from oomscope.reading.tables import Tables
from oomscope.reading.unpickling import SafeUnpickler, unsafe_opcode
from oomscope.units import plural

_HEAD = 1024
_BOM = b"\xef\xbb\xbf"
# Protocols 0 and 1 have no header: MARK, EMPTY_DICT, EMPTY_LIST or GLOBAL stands first.
_OLD_PICKLE = re.compile(rb"[(}\]]|c[\w.]+\n[\w.]+\n")


def read(source: Source) -> Snapshot:
    """The snapshot in `source`.

    Raises:
        SnapshotError: it is of another kind, or damaged.
        UnsafePickleError: it asked to run code.
    """
    head = source.head(_HEAD)
    text = head.removeprefix(_BOM).lstrip()
    if head.startswith(b"\x80"):
        return _read_pickle(source, head)
    if text.startswith((b"{", b"[")):
        return assemble(_json(source), Tables())
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
    return assemble(_unpickled(source, head), Tables())


def _read_streaming(source: Source) -> Snapshot:
    tables = Tables()
    try:
        document = load_streaming(source.stream(), tables, source)
    except CutOffError:
        raise SnapshotError(_cut(source)) from None
    return assemble(document, tables)


def _unpickled(source: Source, head: bytes) -> Any:
    try:
        return SafeUnpickler(source.stream()).load()
    except (SnapshotError, MemoryError):
        raise
    except EOFError as error:
        raise SnapshotError(_cut(source)) from error
    except decompression_errors():
        raise
    except Exception as error:
        if not head.startswith(b"\x80") and _is_text(head):
            raise SnapshotError(_stranger(head)) from error
        if unsafe := unsafe_opcode(source.stream()):
            raise UnsafePickleError(unsafe) from error
        if "truncated" in str(error):
            raise SnapshotError(_cut(source)) from error
        raise SnapshotError(
            f"the file begins like a pickle but is damaged ({printable(str(error), 120)}); copy it again."
        ) from error


def _cut(source: Source) -> str:
    entries = f" and {plural(source.entries, 'trace entry', 'trace entries')}" if source.entries else ""
    return (
        f"the file is cut off: it ends in the middle of the data, after {_readable_bytes(source):,} bytes{entries}; "
        "copy or dump it again."
    )


def _readable_bytes(source: Source) -> int:
    """How many bytes come out of the file, decompressed, before it ends."""
    stream, count = source.stream(), 0
    try:
        while piece := stream.read1(1 << 20):
            count += len(piece)
    except EOFError:
        pass
    except decompression_errors():
        pass
    return count


def _json(source: Source) -> Any:
    import json

    contents = source.stream().read()
    try:
        return json.loads(contents)
    except UnicodeDecodeError as error:
        raise SnapshotError(_stranger(contents[:_HEAD])) from error
    except json.JSONDecodeError as error:
        if error.pos >= len(error.doc.rstrip()):
            raise SnapshotError(f"the JSON is cut off after {len(contents):,} bytes; copy it again.") from error
        raise SnapshotError(
            f"the file begins like JSON but is none ({error.msg}, line {error.lineno}, column {error.colno})."
        ) from error


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
