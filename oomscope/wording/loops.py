"""What the rounds of a program are called: passes are those of a loop, optimizer steps those of the training.

Where both are the same, both are called passes; where they are not, the report says which is which.
"""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.passes.records import FailingPass
from oomscope.analysis.verdict.records import Oom
from oomscope.wording.clean import clean
from oomscope.wording.template import place

_STEPS_ARE = {
    "recorded": "a step is what the program recorded as one",
    "annotations": "a step is a range that the program marked",
    "inferred": "a step is what repeats in the whole recording",
}
_OPTIMIZER_STEP = "each one ends with the step of the optimizer; what comes after the last is drawn with it"


def pass_word(device: DeviceFindings) -> tuple[str, str]:
    """What one of `device.rounds` is called, and several: ``pass`` where they are those of the loop that failed."""
    if device.passes is not None:
        return "pass", "passes"
    steps, known = device.steps, device.oom.verdict.failing_pass if device.oom is not None else None
    if known is not None and steps.source == "inferred" and len(steps.steps) == known.before + known.index + 1:
        return "pass", "passes"
    return ("optimizer step", "optimizer steps") if steps.by_optimizer else ("step", "steps")


def step_underway(device: DeviceFindings, entry: int) -> str:
    """How far the steps had come at `entry`: ``step 7``, ``after 20 optimizer steps``; empty where none is known."""
    step = next((step for step in device.rounds.steps if step.begin <= entry <= step.end), None)
    if step is None:
        return ""
    one, several = pass_word(device)
    steps = device.rounds
    if steps.by_optimizer and steps.source == "recorded" and step is steps.steps[-1]:
        # The recording notes a step when it has ended, so what follows the last one is no step yet.
        return f"after {step.name} {one if step.name == '1' else several}"
    return f"{one} {clean(step.name, 40)}"


def counted(oom: Oom, known: FailingPass) -> int:
    """How many finished passes are told: those of all runs of the loop, or of this one where the headline does so."""
    return known.completed if oom.verdict.told_passes else known.finished


def counts_others(oom: Oom, completed: int) -> bool:
    """Whether the headline speaks of passes, and of another number than this loop has finished."""
    return any(one != completed for one in oom.verdict.told_passes)


def which_is_which(device: DeviceFindings) -> str:
    """Which loop a pass is of, and what a step is where that is something else; empty where neither is spoken of."""
    loops = {growth.loop for growth in device.growth if growth.loop is not None}
    known = device.oom.verdict.failing_pass if device.oom is not None else None
    loop = next(iter(loops)) if len(loops) == 1 else known.loop if known is not None and not loops else None
    parts = [f"here a pass is one round of the loop in {place(loop)}"] if loop is not None else []
    if loop is not None and device.oom is not None and known is not None and known.loop is not None:
        is_told = not counts_others(device.oom, known.completed)
        if is_told and known.loop.function != loop.function:
            parts = [f"{parts[0]}, and above the headline one of the loop in {place(known.loop)}"]
    if len(device.steps.steps) > 1 and pass_word(device)[0] != "pass" and device.steps.source in _STEPS_ARE:
        parts.append(_OPTIMIZER_STEP if device.steps.by_optimizer else _STEPS_ARE[device.steps.source])
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
