"""The variable with which a pass became larger than those before it: a longer batch, a bigger image.

It is what the looping function made or took in on the line where the first larger request of the pass came from, and
still holds in a variable of its own. Its shape is what a person compares with the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomscope.analysis.attribution.held_blocks import live_rows
from oomscope.analysis.passes.loops import LoopRun
from oomscope.analysis.passes.records import NO_LONGER, LargerInput
from oomscope.analysis.passes.same_places import most_before
from oomscope.analysis.passes.work_underway import MODULE
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model.recorded_holders import RecordedTensor

_RESULTS = re.compile(r"(\.|^)(forward|_wrapped_call_impl|_call_impl|__call__): ")
"""The variables of a module that is called."""


def larger_input(study: DeviceStudy, run: LoopRun, entry: int, line: Location | None) -> LargerInput | None:
    """What the pass underway at `entry` brought in that is larger than all that was made at its place before.

    First what the looping function made on `line` and holds itself: of several, what has grown most. Else the first
    thing that a function called from there holds, unless that is a module's `forward`, whose variables are its results.
    None where the recording names no such variable.

    Args:
        study: of the device.
        run: of the loop, in which `entry` is.
        entry: the instant.
        line: of the function that loops.
    """
    if line is None or not run.completed(entry):
        return None
    begin = int(run.starts[run.completed(entry)])
    compared = (_compared(study, *one, begin, line) for one in _brought_in(study, run, entry, line))
    found = [one for one in compared if one is not None]
    own = [one for one in found if one.is_own]
    return max(own, key=lambda one: one.bytes - one.before) if own else next(iter(found), None)


def _brought_in(study: DeviceStudy, run: LoopRun, entry: int, line: Location) -> Iterator[tuple[RecordedTensor, int]]:
    """Tensors that this pass made on `line` and a variable holds, with their lifetimes, in the order they were made."""
    tensors = [one for one in study.snapshot.recorded.tensors_on(study.index) if one.address is not None and one.shape]
    rows = live_rows(study, entry, [one.address or 0 for one in tensors])
    graphs = {one.holder for one in study.snapshot.recorded.holders_on(study.index) if one.kind == "graph"}
    begin, made_by = int(run.starts[run.completed(entry)]), study.history.lifetimes.stack
    born = study.history.lifetimes.born
    for row, tensor in sorted(zip(rows.tolist(), tensors, strict=True), key=lambda pair: int(born[pair[0]])):
        if row < 0 or born[row] < begin or made_by[row] < 0 or not tensor.holders:
            continue
        variable = tensor.holders[0]
        is_told = variable not in graphs and not _RESULTS.search(variable) and (": " in variable)
        if is_told and study.loops.line_within(run, int(made_by[row])) == line:
            yield tensor, row


def _is_of(variable: str, line: Location) -> bool:
    """Whether the recorder's name of a variable is one of the function, or the module, that `line` is in."""
    where = variable.rpartition(": ")[0]
    module = line.file.replace("\\", "/").rpartition("/")[2]
    return where == module if line.function == MODULE else where.rpartition(".")[2] == line.function


def _compared(study: DeviceStudy, tensor: RecordedTensor, row: int, begin: int, line: Location) -> LargerInput | None:
    """`tensor`, if it is larger than all that its place was given before `begin`; None where it is not."""
    born = int(study.history.lifetimes.born[row])
    bytes_ = int(study.history.trace.size[born])
    before = most_before(study, int(study.history.trace.stack[born]), begin)
    if not before or bytes_ <= NO_LONGER * before:
        return None
    variable = tensor.holders[0]
    return LargerInput(variable, tensor.shape or (), bytes_, before, is_own=_is_of(variable, line))
