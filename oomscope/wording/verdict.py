"""What a verdict says beside its headline: replays, and what cannot be known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.units import format_limit
from oomscope.wording.replays import served
from oomscope.wording.template import Sentence


def _served(values: Mapping[str, Any]) -> str:
    return f"Replayed with {values['setting']}, {served(values)}."


def _needs(values: Mapping[str, Any], run: str) -> str:
    parts = [] if values["least"] is None else [f"{format_limit(values['least'])} with {values['setting']}"]
    parts += [] if values["recorded"] is None else [f"{format_limit(values['recorded'])} as recorded"]
    return f"{run} needs {', '.join(parts)}."


def _refused_by_all(values: Mapping[str, Any]) -> str:
    text = f"Replayed under {values['settings']} other settings of the allocator, this request fails under all of them"
    return f"{text}; for {values['doubtful']} more it is not certain." if values["doubtful"] else f"{text}."


VERDICT: dict[str, Sentence] = {
    "verdict.replay.served": _served,
    "verdict.replay.served.grows": "The leak remains.",
    "verdict.replay.served.unknown_after": "What the program would have asked for next is not recorded.",
    "verdict.replay.refused.one": "Replayed with {setting}, this request fails as well[; for {doubtful} more it is not "
    "certain].",
    "verdict.replay.refused.all": _refused_by_all,
    "verdict.replay.depends": "Replayed with {setting}, this request fits if the cap of this process was {least:limit} "
    "or more; the recording tells only that it was between {low:bytes} and {high:bytes} (oomscope whatif --limit "
    "answers for the true one).",
    "verdict.replay.needs": lambda values: _needs(values, "The run up to here"),
    "verdict.replay.needs.whole": lambda values: _needs(values, "The whole recorded run"),
    "verdict.replay.calm": "Replayed with {setting}, the same run reserves {peak:bytes} at its peak instead of "
    "{recorded:bytes}.",
    "verdict.replay.estimated": "This is an estimate: the recording does not begin with the first allocation.",
    "verdict.unknown.card": "The snapshot holds neither the size of the card nor what else fills it (other processes, "
    "the CUDA context, NCCL); a recording by oomscope does.",
    "verdict.unknown.cap": "The process was capped (the device had {free:bytes} free), but the cap is not recorded: it "
    "is between {low:bytes} and {high:bytes}.",
    "verdict.unknown.holder": "Which Python object keeps a tensor alive: a bare snapshot knows where it was made, not "
    "who holds it.",
    "verdict.unknown.recovered": "The program went on allocating after this failure, so it may have been caught on "
    "purpose.",
    "verdict.unknown.sizes": "Block sizes from before the recording, by up to {bytes:bytes} in all.",
    "verdict.unknown.cut": "The file was cut off after {entry:n entry/entries}: what was allocated before the "
    "recording cannot be told from what came after the cut, so more may have been in use than is shown.",
    "verdict.unknown.together": "Several kinds of free bytes together would have been enough, though no single one was."
    "",
}
