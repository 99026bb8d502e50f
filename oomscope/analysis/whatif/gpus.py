"""Devices by name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from oomscope.errors import RequestError
from oomscope.units import GIB, parse_bytes

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

_ALIASES = {"A100": "A100-40", "V100": "V100-16", "3090": "RTX3090", "4090": "RTX4090", "5090": "RTX5090"}
_IGNORED = re.compile(r"[\s_]|NVIDIA|TESLA|GEFORCE|GB\b")


def capacity(text: str) -> int:
    """The memory in bytes of a device given by its name (``A100-40``, ``H100``) or its size (``24GiB``).

    Raises:
        RequestError: `text` is neither.
    """
    name = _IGNORED.sub("", text.upper())
    name = _ALIASES.get(name, name)
    if name in TOTAL_GIB:
        return int(TOTAL_GIB[name] * GIB)
    try:
        return parse_bytes(text)
    except ValueError:
        known = ", ".join(TOTAL_GIB)
        raise RequestError(f"{text!r} is neither a size such as 24GiB nor a known device; known are {known}.") from None
