"""Freed memory is kept by glibc, unless somebody has tuned it."""

from __future__ import annotations

import ctypes
import os
import sys
from types import SimpleNamespace

import pytest

from oomscope.commands.common.freed_memory import keep_freed_memory


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What the C library is told, on a machine where nothing is tuned."""
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(mallopt=lambda *words: calls.append(words)))
    monkeypatch.setattr(sys, "platform", "linux")
    for name in os.environ:
        if name.startswith("MALLOC_"):
            monkeypatch.delenv(name)
    return calls


def test_arrays_of_a_long_trace_come_from_memory_that_was_freed(told: list[tuple[int, int]]) -> None:
    keep_freed_memory()
    assert dict(told)[-3] >= 8 << 20
    assert dict(told)[-1] > dict(told)[-3]


def test_what_somebody_has_tuned_stays(told: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "0")
    keep_freed_memory()
    assert told == []


def test_other_systems_and_libraries_are_left_alone(
    told: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())
    keep_freed_memory()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("it was looked for"))
    keep_freed_memory()
    assert told == []
