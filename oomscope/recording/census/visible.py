"""How much of a storage is shown by the tensors that code can reach: a small view keeps all that it is a part of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oomscope.recording.census.holding import Holding
from oomscope.recording.census.storages import Key, TensorReader


def mark_visible(holding: Holding, reader: TensorReader, tensors: Iterable[Any]) -> None:
    """Note what is shown of each storage, in bytes, where that is less than all of it and no graph needs the rest.

    Args:
        holding: who refers to whom, once every root has claimed what it reaches.
        reader: has the storages.
        tensors: that are no module's own. One that nothing refers to is only what a view was made of.
    """
    shown: dict[Key, int] = {}
    for tensor in tensors:
        node, key = holding.numbers.get(id(tensor)), reader.key(tensor)
        if node is not None and key is not None and holding.is_claimed(node):
            shown[key] = shown.get(key, 0) + tensor.numel() * tensor.element_size()
    for key, bytes_ in shown.items():
        storage = reader.storages[key]
        if storage.name is None and storage.saved_for is None and bytes_ < storage.bytes:
            storage.visible = bytes_
