"""Messages that programs printed, from public issues, each with what it says, written down by hand before it was read.

Sizes are written as printed; two with a plus between them are added. `first` was collected to measure the first version
of the rules, `second` and `third` to measure what had been mended since; all are kept so that no wording is lost again.
Those from `twentyfirst` on keep the wording and the layout of public ones, with other numbers, paths and names.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

SETS = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
    "twentyfirst",
    "twentysecond",
    "twentythird",
    "twentyfourth",
    "twentyfifth",
    "twentysixth",
    "twentyseventh",
    "twentyeighth",
    "twentyninth",
    "thirtieth",
    "thirtyfirst",
    "thirtysecond",
    "thirtythird",
    "thirtyfourth",
    "thirtyfifth",
)
_SCALES = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def messages(name: str) -> list[dict[str, Any]]:
    """One of `SETS`."""
    return _messages(f"public_{name}.json")


def written() -> list[dict[str, Any]]:
    """Messages that were written in wordings for which no public one is at hand."""
    return _messages("written.json")


def _messages(file: str) -> list[dict[str, Any]]:
    found = json.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
    return [_with_sizes(one) for one in found]


def _with_sizes(one: dict[str, Any]) -> dict[str, Any]:
    return {key: _read(key, value) for key, value in one.items()}


def _read(key: str, value: Any) -> Any:
    if key == "messages":
        return [_with_sizes(one) for one in value]
    return value if key in ("source", "kind", "text") or not isinstance(value, str) else _size(value)


def _size(text: str) -> int:
    total = Fraction(0)
    for part in text.split(" + "):
        number, unit = part.split()
        total += Fraction(number) * _SCALES[unit]
    return round(total)
