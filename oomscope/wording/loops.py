"""What the rounds of a program are called: passes are those of a loop, steps those of the training.

Where both are the same loop, both are called passes; where they are not, the report says which is which.
"""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.passes.records import StepPeak
from oomscope.wording.template import place

_STEPS_ARE = {
    "recorded": "a step runs from one optimizer step to the next, as recorded",
    "annotations": "a step is a range that the program marked",
    "inferred": "a step is what repeats in the whole recording",
}


def pass_word(device: DeviceFindings) -> tuple[str, str]:
    """What one of `device.steps` is called, and several: ``pass`` where they are those of the loop that failed."""
    steps, known = device.steps, device.oom.verdict.failing_pass if device.oom is not None else None
    same = known is not None and steps.source == "inferred" and len(steps.steps) == known.index + 1
    return ("pass", "passes") if same else ("step", "steps")


def step_name(device: DeviceFindings, step: StepPeak) -> str:
    """The name of a step; a pass is counted from 1, as the line above the headline counts it."""
    counted = pass_word(device)[0] == "pass" and step.name.isdecimal()
    return f"{int(step.name) + 1}" if counted else step.name


def which_is_which(device: DeviceFindings) -> str:
    """Which loop a pass is of, and what a step is where that is something else; empty where neither is spoken of."""
    loops = {growth.loop for growth in device.growth if growth.loop is not None}
    known = device.oom.verdict.failing_pass if device.oom is not None else None
    loop = next(iter(loops)) if len(loops) == 1 else known.loop if known is not None and not loops else None
    parts = [f"here a pass is one round of the loop in {place(loop)}"] if loop is not None else []
    if loop is not None and known is not None and known.loop is not None and known.loop.function != loop.function:
        parts = [f"{parts[0]}, and above the headline one of the loop in {place(known.loop)}"]
    if len(device.steps.steps) > 1 and pass_word(device)[0] == "step" and device.steps.source in _STEPS_ARE:
        parts.append(_STEPS_ARE[device.steps.source])
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
