"""Devices by name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from oomscope.errors import RequestError
from oomscope.units import GIB, MIB, TIB, format_bytes, parse_bytes

TOTAL_GIB: Mapping[str, float] = {
    "T4": 14.56,
    "P100": 15.88,
    "V100-16": 15.77,
    "V100-32": 31.73,
    "A10": 21.99,
    "A10G": 22.05,
    "L4": 22.03,
    "A30": 23.50,
    "RTX3090": 23.57,
    "RTX4090": 23.52,
    "RTX5090": 31.36,
    "A40": 44.35,
    "L40S": 44.39,
    "A6000": 47.40,
    "A100-40": 39.39,
    "A100-80": 79.14,
    "H100": 79.11,
    "H100-NVL": 93.00,
    "H200": 139.80,
    "B200": 178.35,
}
"""GiB in all, as torch's own error messages report them ("has a total capacity of …").

The H200 was measured. The others are what users report, the lower end where drivers and ECC settings differ.
"""

_ALIASES = {
    "A100": "A100-40",
    "V100": "V100-16",
    "H100-80": "H100",
    "3090": "RTX3090",
    "4090": "RTX4090",
    "5090": "RTX5090",
    "RTXA6000": "A6000",
}
# Also as torch.cuda.get_device_name() gives them: maker, series, form and kind of memory tell no sizes apart.
_IGNORED = re.compile(r"\b(NVIDIA|TESLA|GEFORCE|SXM\d?|PCIE|HBM\w*)\b|(?<=\d)GB\b")
_JOINTS = re.compile(r"[\s_-]+")

SMALLEST = 2 * MIB
"""The smallest segment: a process that may reserve less can allocate nothing."""
LARGEST = 1024 * TIB


def size(text: str) -> int:
    """Memory that a process or a card may have, in bytes.

    Raises:
        RequestError: `text` is no size, or too small for a single segment.
    """
    try:
        count = parse_bytes(text)
    except ValueError as error:
        raise RequestError(f"{error}.") from None
    if count > LARGEST:
        raise RequestError(f"{text!r} is more than any device has.")
    if count < SMALLEST:
        number = text.strip()
        meant = f"{number}GiB" if number.isdigit() and 0 < int(number) < 1000 else "4GiB"
        raise RequestError(
            f"{text!r} is {format_bytes(count)}, less than the smallest segment ({format_bytes(SMALLEST)}); "
            f"write it with a unit, such as {meant}."
        )
    return count


def capacity(text: str) -> int:
    """The memory in bytes of a device given by its name (``A100-40``, ``H100``) or its size (``24GiB``).

    Raises:
        RequestError: `text` is neither.
    """
    name = _key(text)
    if name in _BY_KEY:
        return int(TOTAL_GIB[_BY_KEY[name]] * GIB)
    try:
        parse_bytes(text)
    except ValueError:
        known = ", ".join(TOTAL_GIB)
        raise RequestError(f"{text!r} is neither a size such as 24GiB nor a known device; known are {known}.") from None
    return size(text)


def _key(name: str) -> str:
    """The name of a device without what may be written in many ways."""
    return _JOINTS.sub("", _IGNORED.sub("", _JOINTS.sub(" ", name.upper())))


_BY_KEY = {_key(name): name for name in TOTAL_GIB} | {_key(alias): name for alias, name in _ALIASES.items()}
