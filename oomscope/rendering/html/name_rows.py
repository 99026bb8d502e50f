"""The table of tensors that the recording could name."""

from __future__ import annotations

import re

from oomscope.analysis.findings import DeviceFindings
from oomscope.frozen import frozen
from oomscope.wording.places import holder_name

MOST_NAMES = 60
_ELEMENT = re.compile(r"\[\d+\]")


@frozen
class NameRow:
    """Tensors that the recording describes in the same words; `bytes` is their sum."""

    name: str
    category: str
    kind: str
    holders: tuple[str, ...]
    tensors: int
    bytes: int


def name_rows(device: DeviceFindings) -> tuple[NameRow, ...]:
    """The tensors that the recording knows, most bytes first; those that read the same are one row."""
    groups: dict[tuple[str, str, str, tuple[str, ...]], tuple[int, int]] = {}
    for tensor in device.names:
        shape = "" if tensor.shape is None else f" [{', '.join(map(str, tensor.shape))}]"
        # Elements of one list differ by their place in it only.
        holders = tuple(dict.fromkeys(_ELEMENT.sub("[…]", holder_name(holder)) for holder in tensor.holders))[:3]
        key = tensor.name, tensor.category, f"{tensor.dtype or ''}{shape}", holders
        tensors, count = groups.get(key, (0, 0))
        groups[key] = tensors + 1, count + tensor.bytes
    rows = [NameRow(*key, tensors, count) for key, (tensors, count) in groups.items()]
    return tuple(sorted(rows, key=lambda row: -row.bytes)[:MOST_NAMES])
