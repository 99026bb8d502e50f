"""Sizes and times as people read and write them. Bytes are binary units everywhere, as in PyTorch's own messages."""

from __future__ import annotations

import re

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40

_UNITS = (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB))
_SCALES = {
    "": 1, "b": 1,
    "k": KIB, "kib": KIB, "kb": 1000,
    "m": MIB, "mib": MIB, "mb": 1000**2,
    "g": GIB, "gib": GIB, "gb": 1000**3,
    "t": TIB, "tib": TIB, "tb": 1000**4,
}  # fmt: skip
_SIZE = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([a-z]*)\s*\Z", re.IGNORECASE)


class Rounded(int):
    """Bytes that were printed rounded, or that come of such.

    Attributes:
        off_by: how many more or less they may be.
    """

    off_by: int

    def __new__(cls, count: int, off_by: int) -> Rounded:
        """`count` bytes, `off_by` more or less."""
        made = super().__new__(cls, count)
        made.off_by = off_by
        return made


_LOOSE = 4
"""Times the last digit that is shown: what it may be off by, as where several rounded sizes are added."""


def format_bytes(count: int) -> str:
    """`count` bytes in three significant digits and a binary unit: ``1.17 GiB``, ``512 B``, ``-20 MiB``."""
    magnitude = abs(count)
    sign = "-" if count < 0 else ""
    for unit, scale in _UNITS:
        # 1023.5 KiB and more would round to 1024 KiB: the next unit reads better.
        if magnitude >= scale * 0.9995:
            return f"{sign}{_three_digits(magnitude / scale)} {unit}"
    return f"{sign}{magnitude} B"


def format_size(count: int) -> str:
    """`count` bytes as PyTorch's messages print them, with two decimals: ``23.65 GiB``, ``512 bytes``.

    Of `Rounded` bytes no finer digit is shown than they are known to: ``0.67 GiB``, ``5.3 GiB``, ``120 MiB``.
    """
    if isinstance(count, Rounded) and count.off_by:
        return _format_rounded(count)
    magnitude = abs(count)
    sign = "-" if count < 0 else ""
    for unit, scale in _UNITS:
        if magnitude >= scale:
            return f"{sign}{magnitude / scale:.2f} {unit}"
    return f"{sign}{plural(magnitude, 'byte')}"


def _format_rounded(count: Rounded) -> str:
    for (unit, scale), (_, larger) in zip((*_UNITS[::-1],), (*_UNITS[-2::-1], ("", 0)), strict=True):
        if abs(count) >= larger > 0:
            continue
        for decimals in (2, 1, 0):
            if count.off_by <= _LOOSE * scale / 10**decimals:
                return f"{count / scale:.{decimals}f} {unit}"
    return f"{count / TIB:.2f} TiB"


def format_limit(count: int) -> str:
    """`count` bytes rounded up, so that what needs them has them under a limit of that size: ``15.28 GiB``."""
    if count >= GIB:
        return f"{-(-count * 100 // GIB) / 100:,.2f} GiB"
    return f"{-(-count // MIB):,} MiB"


def _three_digits(value: float) -> str:
    for decimals, bound in ((2, 9.995), (1, 99.95)):
        if value < bound:
            return f"{value:.{decimals}f}"
    return f"{value:,.0f}"


def parse_bytes(text: str) -> int:
    """The number of bytes that `text` means: ``20GiB``, ``512MB``, ``1_000_000``, ``1.5 G``.

    ``K``, ``M``, ``G`` and ``T`` alone are binary, as torch and CUDA mean them; ``kB``, ``MB``, … are decimal.

    Raises:
        ValueError: `text` is no size.
    """
    match = _SIZE.match(text)
    scale = _SCALES.get(match[2].lower()) if match else None
    if match is None or scale is None:
        raise ValueError(f"{text!r} is not a size; write it as 20GiB, 512MB or 1_000_000")
    return round(float(match[1].replace("_", "")) * scale) if "." in match[1] else int(match[1]) * scale


def format_duration(microseconds: float) -> str:
    """A span of time for reading: ``2.31 s``, ``450 ms``, ``3 min 20 s``, ``1 h 05 min``."""
    seconds = abs(microseconds) / 1e6
    if seconds < 0.001:
        return f"{abs(microseconds):.0f} µs"
    if seconds < 0.9995:
        return f"{_three_digits(seconds * 1e3)} ms"
    if seconds < 120:
        return f"{_three_digits(seconds)} s"
    minutes = int(seconds // 60)
    if minutes < 120:
        return f"{minutes} min {int(seconds % 60):02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def format_count(count: int) -> str:
    """A count with thousands separated: ``1,621,703``."""
    return f"{count:,}"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """``1 block``, ``650 blocks``: the count with the noun in its right form."""
    return f"{count:,} {noun if count == 1 else (nouns or noun + 's')}"
