"""Move or free the blocks that keep free bytes apart."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.memory.records import Pin
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "move_pins"

MOST_PLACES = 2


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """The lines whose blocks lie scattered over the most free bytes."""
    for pin in circumstances.movable_pins[:MOST_PLACES]:
        place = pin.site or pin.caller
        values = {
            "place": place,
            "blocks": pin.blocks,
            "smallest": pin.smallest,
            "largest": pin.largest,
            "segments": pin.segments,
        }
        code = f"{SLUG}.one" if pin.blocks == 1 else SLUG
        yield Advice(code, values, None, _is_enough(circumstances, pin), at=place)


def _is_enough(circumstances: Circumstances, pin: Pin) -> bool | None:
    """By arithmetic: what the blocks of a line keep alone comes free; of what others keep as well, only they tell."""
    if enough_by_sum(circumstances, pin.alone_bytes):
        return True
    return None if enough_by_sum(circumstances, pin.stranded_bytes) is not False else False
