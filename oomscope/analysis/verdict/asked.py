"""Who asked: which part of the program made a request that failed."""

from __future__ import annotations

from collections.abc import Sequence

from oomscope.analysis.attribution.sites import is_readers_frame
from oomscope.analysis.labels.evaluating import work_of_library
from oomscope.analysis.labels.stack_roles import Role, tells_backward
from oomscope.analysis.passes.first_pass import is_first_pass
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.analysis.verdict.records import Asked
from oomscope.model import Frame

ROUNDING = 512
"""Bytes to which the allocator rounds what is asked for."""


def who_asked(study: DeviceStudy, request: FailedRequest) -> Asked:
    """Which part of the program made `request`, from its stack and from what the recording saw of the main thread."""
    stack = int(study.history.trace.stack[request.entry])
    role = int(study.roles.role[stack])
    recorded = study.snapshot.recorded
    calling = recorded.stacks.backward or recorded.stacks.main
    in_backward = role == Role.BACKWARD or (role == Role.UNFRAMED and _calls_backward(calling))
    phase = {Role.FORWARD: "forward", Role.OPTIMIZER: "optimizer"}.get(Role(role), "other")
    caller = request.caller if request.caller != request.site else None
    if not in_backward:
        is_first = is_first_pass(study, request.entry, phase)
        return Asked(phase, request.site, caller, is_first=is_first, within=work_of_library(study.snapshot, stack))
    own = study.snapshot.stacks[stack] if stack >= 0 else ()
    line = _line_of_backward(own) or _line_of_backward(calling)
    return Asked(
        "backward",
        request.site,
        caller,
        backward_call=line,
        gradient_of=_gradient_of(study, request),
        node=recorded.autograd.node,
        is_first=is_first_pass(study, request.entry, "backward"),
    )


def _gradient_of(study: DeviceStudy, request: FailedRequest) -> str | None:
    """The parameter whose gradient was asked for: of those that the node makes gradients of, the one of that size.

    Gradients of a weight and of a bias come out of one node, and so does that of its input, which is no parameter's.
    """
    recorded = study.snapshot.recorded
    bytes_of = {one.name: one.bytes or 0 for one in recorded.tensors_on(study.index) if one.category == "parameter"}
    alike = (name for name in recorded.autograd.gradients_of if 0 <= request.size - bytes_of.get(name, -1) < ROUNDING)
    return next(alike, None)


def _calls_backward(frames: Sequence[Frame]) -> bool:
    return any(tells_backward(frame) for frame in frames)


def _line_of_backward(frames: Sequence[Frame]) -> Location | None:
    """The reader's innermost line outside the frames of the backward call."""
    outer = max((level for level, frame in enumerate(frames) if tells_backward(frame)), default=None)
    if outer is None:
        return None
    return next((Location(*frame[:3]) for frame in frames[outer + 1 :] if is_readers_frame(frame)), None)
