"""Which running calls record no gradients: what they read of a tensor is its values, never the graph behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any

from oomscope.recording.census import roots as places
from oomscope.recording.census.liveness import Use, uses_after_block

_OFF = frozenset({"no_grad", "inference_mode"})
_DECORATED = frozenset({"decorate_context", "generator_context"})
"""What torch runs instead of a function that has one of its context managers as decorator."""
_FACTORY = "ctx_factory"
NOTHING: frozenset[Use] = frozenset()


def uses_with_gradients(stack: Iterable[FrameType], offsets: Mapping[int, int]) -> dict[int, frozenset[Use]]:
    """By the id of a call that records no gradients just now, what it will read once it does so again.

    Args:
        stack: the running calls of one thread, outermost first.
        offsets: by the id of a frame, where it stood when an exception was raised there.
    """
    found: dict[int, frozenset[Use]] = {}
    is_off = False
    for frame in stack:
        decorated = _decorator(frame)
        if decorated is not None:
            is_off = not decorated
        elif is_off:
            found[id(frame)] = NOTHING
        else:
            after = uses_after_block(frame.f_code, offsets.get(id(frame), frame.f_lasti), _OFF)
            if after is not None:
                found[id(frame)], is_off = after, True
    return found


def _decorator(frame: FrameType) -> bool | None:
    """Whether a call of torch's turns gradients on or off for the function that it runs; None for any other call."""
    code = frame.f_code
    if code.co_name not in _DECORATED or not places.is_torchs(code.co_filename):
        return None
    manager: Any = getattr(places.local_variables(frame).get(_FACTORY), "__self__", None)
    name, mode = type(manager).__name__, getattr(manager, "mode", None)
    if name == "set_grad_enabled":
        return bool(mode)
    if name == "inference_mode" and mode is False:
        return None
    return False if name in _OFF else True if name == "enable_grad" else None
