"""What the program itself said, in words: its ranges, metadata, compiled regions and pools."""

from __future__ import annotations

from oomscope.analysis.said.records import PoolFigures, Said
from oomscope.model import PoolId
from oomscope.wording.clean import clean

KIND_LABELS = {
    "range": "range",
    "metadata": "metadata",
    "compiled": "compiled region",
    "annotation": "annotated tensor",
}
"""What each kind of name is called; the slugs are those of `NamedUse.kind`."""
POOL_LABELS = {"graph": "CUDA graph", "mempool": "MemPool"}
_LONGEST = 120
_WITHIN = " > "


def said_text(said: Said) -> str | None:
    """Where the program said that a request was made, in a sentence; None where it said nothing."""
    parts = []
    if said.ranges:
        parts.append(f"in the range {_quoted(_WITHIN.join(said.ranges))}")
    if said.metadata:
        parts.append(f"with the metadata {_quoted(said.metadata)}")
    if said.compiled:
        parts.append(f"in {clean(said.compiled, _LONGEST)}")
    if said.pool is not None:
        parts.append(f"for the pool {pool_text(said.pool, said.pool_name)}")
    return f"The program marked it: {', '.join(parts)}." if parts else None


def pool_text(pool: PoolId, name: str | None) -> str:
    """A pool by what the program calls it, and torch's id: ``serve: kv_pool (0, 1)``."""
    number = f"({pool[0]}, {pool[1]})"
    return number if name is None else f"{clean(name, _LONGEST)} {number}"


def pool_name(figures: PoolFigures) -> str:
    """`pool_text` of `figures`."""
    return pool_text(figures.pool, figures.name)


def _quoted(text: str) -> str:
    return f"“{clean(text, _LONGEST)}”"
