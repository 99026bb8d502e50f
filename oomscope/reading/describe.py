"""What a file that is no snapshot looks like, in words for the error."""

from __future__ import annotations

from typing import Any

from oomscope.reading.columns import kind_of
from oomscope.reading.printable import listing, printable
from oomscope.units import plural

_LEGACY_CHECKPOINT = 0x1950A86A20F9469CFC6C


def describe(document: Any) -> str:
    """`document` in a few words: ``a dict with the keys 'model', 'optimizer'``."""
    if document == _LEGACY_CHECKPOINT:
        return "a checkpoint written by torch.save (its old format)"
    if isinstance(document, dict):
        return _describe_dict(document)
    if isinstance(document, list):
        kinds = sorted({kind_of(item) for item in document[:1000]})
        return f"a list of {plural(len(document), 'item')}" + (f" ({', '.join(kinds[:3])})" if kinds else "")
    if isinstance(document, (str, int, float, bool)):
        return f"{kind_of(document)} ({printable(document)})"
    return kind_of(document)


def _describe_dict(document: dict[Any, Any]) -> str:
    if "traceEvents" in document:
        return "a Chrome trace, as torch.profiler exports it"
    names = [str(key) if isinstance(key, (str, int)) else kind_of(key) for key in list(document)[:100]]
    if not names:
        return "an empty dict"
    if {"state_dict", "optimizer", "model_state_dict", "optimizer_state_dict"} & set(names) or all(
        name.endswith((".weight", ".bias")) for name in names[:4]
    ):
        return f"what looks like a checkpoint (a dict with {plural(len(document), 'key')}: {listing(names, 4)})"
    return f"a dict with {plural(len(document), 'key')}: {listing(names)}"
