"""Memory that is freed stays with the process, where its C library can be told so."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from oomscope.commands.common.heap import keep_freed_memory

PROGRAM = """
import resource, sys
from oomscope.commands.common.heap import keep_freed_memory
import numpy as np
if sys.argv[1] == "keep":
    keep_freed_memory()
np.ones(2 << 20)
begun = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones(2 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - begun)
"""


def faults(how: str) -> int:
    """How many pages a fresh process was given for columns of 16 MiB, one after the other."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left as they are")
def test_a_column_takes_the_place_of_the_last() -> None:
    assert faults("keep") < 10


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_other_systems_are_left_as_they_are(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setitem(sys.modules, "ctypes", None)
    keep_freed_memory()


def test_a_c_library_without_the_setting_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes

    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    keep_freed_memory()
