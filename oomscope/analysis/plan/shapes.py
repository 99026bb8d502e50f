"""Shapes as people write them: ``batch=8,seq=512``; ranges ``batch=8..64``, in steps of 8 ``batch=8..64..8``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from oomscope.errors import RequestError

MOST_SHAPES = 64
"""Of one command; each is replayed several times."""
LARGEST_VALUE = 1 << 40
POINTS = 9
"""Of a range: doublings while they fit in, else evenly spread."""


def parse_shape(text: str) -> dict[str, int]:
    """One shape: ``batch=8,seq=512``.

    Raises:
        RequestError: `text` is none.
    """
    shape = {}
    for name, value in _pairs(text):
        shape[name] = _whole(value, text)
    return shape


def parse_shapes(text: str) -> list[dict[str, int]]:
    """All shapes of a text in which values may be ranges, with a step or without: ``batch=8..64..8,seq=512``.

    Raises:
        RequestError: `text` is none, or stands for more than `MOST_SHAPES`.
    """
    names: list[str] = []
    choices: list[list[int]] = []
    for name, value in _pairs(text):
        names.append(name)
        choices.append(_values(value, text))
    shapes = [dict(zip(names, values, strict=True)) for values in product(*choices)]
    if len(shapes) > MOST_SHAPES:
        raise RequestError(f"{text!r} stands for {len(shapes)} shapes; ask for at most {MOST_SHAPES} at a time.")
    return shapes


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (equals and name.isidentifier() and value):
            raise RequestError(f"{text!r} is not a shape; write it as batch=8,seq=512.")
        if name in dict(pairs):
            raise RequestError(f"{text!r} names {name} twice.")
        pairs.append((name, value))
    return pairs


def _values(text: str, whole: str) -> list[int]:
    low_text, dots, rest = text.partition("..")
    low = _whole(low_text, whole)
    if not dots:
        return [low]
    high_text, has_step, step_text = rest.partition("..")
    high = _whole(high_text, whole)
    if high < low:
        raise RequestError(f"{whole!r}: the range {text} goes down; write the smaller value first.")
    return list(range(low, high + 1, _whole(step_text, whole))) if has_step else spread(low, high)


def spread(low: int, high: int) -> list[int]:
    """At most `POINTS` values from `low` to `high`: the doublings of `low`, if they end in `high`, else even steps."""
    doublings = [low]
    while doublings[-1] < high:
        doublings.append(2 * doublings[-1])
    if doublings[-1] == high and 3 < len(doublings) <= POINTS:
        return doublings
    step = -(-(high - low) // (POINTS - 1)) or 1
    values = list(range(low, high + 1, step))
    return values if values[-1] == high else [*values, high]


def _whole(text: str, whole: str) -> int:
    digits = text.strip().replace("_", "")
    value = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else 0
    if not 0 < value <= LARGEST_VALUE:
        raise RequestError(f"{whole!r}: {text.strip()!r} is not a whole number above 0.")
    return value


def complete(shape: Mapping[str, int], base: Mapping[str, int], names: Sequence[str]) -> dict[str, int]:
    """`shape` with what it does not say taken from `base`, in the order of `names`.

    Raises:
        RequestError: it names a parameter that no recording has.
    """
    unknown = [name for name in shape if name not in names]
    if unknown:
        known = ", ".join(names) or "none"
        raise RequestError(
            f"{unknown[0]} is no parameter of the recordings, which have {known}; tell its value with --at."
        )
    return {name: shape.get(name, base.get(name, 0)) for name in names}
