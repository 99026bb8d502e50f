"""What the unpickler is told in place of entries that it never sees, so that its memo stays what it was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oomscope.model import BoolArray, IntArray

_EMPTY_LIST = b"]\x940"  # EMPTY_LIST MEMOIZE POP
_NO_INDEX = b"j\0\0\0\0\x940"  # LONG_BINGET of an index that is put in, MEMOIZE POP


def remembering(
    heads: Sequence[bytes], shape: IntArray, lists: IntArray, is_written: BoolArray, is_new: BoolArray
) -> bytes:
    """Instructions that add to the memo what entries do.

    Args:
        heads: for each shape those for all but a list of frames.
        shape: of each entry.
        lists: for each entry the index of a list with its frames.
        is_written: whether it adds a list of frames.
        is_new: whether that is a new list.
    """
    width = max(map(len, heads)) + len(_NO_INDEX)
    tails = (b"", _EMPTY_LIST, _NO_INDEX)
    # What an entry of each shape adds without a list of frames, with a new one, and with one that is there already.
    texts = [(head + tail).rjust(width, b"\0") for head in heads for tail in tails]
    filled = [bytes(width - len(head + tail)).ljust(width, b"\1") for head in heads for tail in tails]
    which = shape * len(tails) + np.where(is_new, 1, np.where(is_written, 2, 0))
    octets = np.array(texts, f"V{width}")[which].view(np.uint8).reshape(len(which), width)
    is_there = is_written & ~is_new
    index = np.ndarray((len(which),), "<u4", octets, offset=width - 6, strides=(width,))  # where it is to be put in
    index[is_there] = lists[is_there]
    is_used = np.array(filled, f"V{width}")[which].view(np.bool_).reshape(len(which), width)
    return octets[is_used].tobytes()


def list_of(indexes: list[int]) -> bytes:
    """Instructions that make a list of remembered objects."""
    return b"](" + b"".join(b"j" + index.to_bytes(4, "little") for index in indexes) + b"e"
