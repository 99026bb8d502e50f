"""What the unpickler is told in place of entries that it never sees, so that its memo stays what it was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oomscope.model import BoolArray, IntArray

_EMPTY_LIST = b"]\x940"  # EMPTY_LIST MEMOIZE POP
_LONG_BINGET, _MEMOIZE, _POP = b"j\x940"


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
    most = max(map(len, heads))
    beginnings = np.array([list(head.ljust(most)) for head in heads], np.uint8)
    octets = np.empty((len(shape), most + 7), np.uint8)
    octets[:, :most] = beginnings[shape]
    octets[:, most] = _LONG_BINGET
    octets[:, most + 1 : most + 5] = lists.astype("<u4")[:, None].view(np.uint8)
    octets[:, most + 5] = _MEMOIZE
    octets[:, most + 6] = _POP
    octets[is_new, most : most + 3] = np.frombuffer(_EMPTY_LIST, np.uint8)
    is_used = np.empty(octets.shape, np.bool_)
    is_used[:, :most] = np.arange(most) < np.array([len(head) for head in heads])[shape][:, None]
    is_used[:, most : most + 3] = is_written[:, None]
    is_used[:, most + 3 :] = (is_written & ~is_new)[:, None]
    return octets[is_used].tobytes()


def list_of(indexes: list[int]) -> bytes:
    """Instructions that make a list of remembered objects."""
    return b"](" + b"".join(b"j" + index.to_bytes(4, "little") for index in indexes) + b"e"
