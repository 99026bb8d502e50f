"""Sizes, times and counts, as people write and read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.units import (
    GIB,
    KIB,
    MIB,
    TIB,
    format_bytes,
    format_count,
    format_duration,
    format_limit,
    parse_bytes,
    plural,
)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (KIB, "1.00 KiB"), (1536, "1.50 KiB"), (MIB - 1, "1.00 MiB"),
        (20 * MIB, "20.0 MiB"), (999 * MIB, "999 MiB"), (1000 * MIB, "1,000 MiB"), (GIB - 1, "1.00 GiB"),
        (1258291200, "1.17 GiB"), (int(9.996 * GIB), "10.0 GiB"), (int(99.96 * GIB), "100 GiB"), (TIB, "1.00 TiB"),
        (5000 * TIB, "5,000 TiB"), (-20 * MIB, "-20.0 MiB"), (-1, "-1 B"),
    ],
)  # fmt: skip
def test_bytes_are_shown_in_three_digits_and_binary_units(count: int, text: str) -> None:
    assert format_bytes(count) == text


@given(st.integers(-(1 << 60), 1 << 60))
def test_what_is_shown_is_within_half_a_percent(count: int) -> None:
    shown = parse_bytes(format_bytes(count).lstrip("-").replace(",", ""))
    assert abs(shown - abs(count)) <= 0.0051 * abs(count)
    assert format_bytes(count).startswith("-") == (count < 0)


@given(st.integers(1, 1 << 45))
def test_a_limit_as_shown_suffices_and_is_little_above(count: int) -> None:
    shown = parse_bytes(format_limit(count).replace(",", ""))
    assert 0 <= shown - count <= (GIB // 100 + 1 if count >= GIB else MIB)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("20GiB", 20 * GIB), ("512MB", 512_000_000), ("1_000_000", 1_000_000), ("1.5 G", 3 * GIB // 2), (" 7 ", 7),
        ("10k", 10 * KIB), ("3 tib", 3 * TIB), ("0", 0), ("8b", 8), ("0.5KB", 500),
    ],
)  # fmt: skip
def test_sizes_are_read_in_both_kinds_of_units(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1e9", "20 GiBs", "1.2.3", "inf", "0x10", "1,000", "²", "_1"])
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="20GiB"):
        parse_bytes(text)


@given(st.integers(0, 1 << 62))
def test_a_plain_number_of_bytes_is_exact(count: int) -> None:
    assert parse_bytes(str(count)) == count


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0 µs"), (999, "999 µs"), (1000, "1.00 ms"), (450_000, "450 ms"), (999_700, "1.00 s"),
        (2_310_000, "2.31 s"), (119.4e6, "119 s"), (200e6, "3 min 20 s"), (3600e6, "60 min 00 s"),
        (7199e6, "119 min 59 s"), (7500e6, "2 h 05 min"),
    ],
)  # fmt: skip
def test_durations_read_as_people_say_them(microseconds: float, text: str) -> None:
    assert format_duration(microseconds) == text


def test_counts_and_nouns() -> None:
    assert format_count(1_621_703) == "1,621,703"
    assert [plural(count, "block") for count in (0, 1, 2, 1000)] == ["0 blocks", "1 block", "2 blocks", "1,000 blocks"]
    assert plural(2, "entry", "entries") == "2 entries"
