"""Which line of code stands for a stack."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.attribution.sites import NO_LOCATION, SiteTable, stack_text
from oomscope.model import NO_STACK, Frame, StackTable
from tests.test_frames import CPP, DOWNLOADED, LIBRARY, OWN, PLUMBING, RECORDER, STANDARD, TORCH


def table(*stacks: list[str]) -> SiteTable:
    frames = [Frame(file, 1, "f") for stack in stacks for file in stack]
    numbers = iter(range(len(frames)))
    return SiteTable(StackTable.from_stacks(frames, [[next(numbers) for _ in stack] for stack in stacks]))


def site(*stack: str) -> str | None:
    found = table(list(stack))
    location = found.location(int(found.site_of[0]))
    return location.file if location else None


def caller(*stack: str) -> str | None:
    found = table(list(stack))
    location = found.location(int(found.caller_of[0]))
    return location.file if location else None


@pytest.mark.parametrize("inner", [*TORCH, *STANDARD, *CPP, *PLUMBING, *RECORDER])
def test_frames_of_torch_cpp_and_plumbing_are_no_sites(inner: str) -> None:
    assert site(inner) is None
    assert site(inner, "/workspace/train/model.py") == "/workspace/train/model.py"


@pytest.mark.parametrize("file", [*LIBRARY, *DOWNLOADED, *OWN])
def test_model_code_is_a_site_wherever_it_lies(file: str) -> None:
    assert site("??", TORCH[0], file, "/workspace/train/main.py") == file


def test_the_caller_is_the_readers_own_code() -> None:
    library, own = LIBRARY[0], "/workspace/train/train.py"
    assert (site(TORCH[0], library, own), caller(TORCH[0], library, own)) == (library, own)
    assert caller(TORCH[0], library) is None
    assert (site(own), caller(own)) == (own, own)


def test_stacks_without_a_site_have_none() -> None:
    found = table([TORCH[0], "<frozen runpy>"], [], ["??"], ["a.py"])
    assert found.site_of.tolist()[:3] == [NO_LOCATION] * 3
    assert found.location(NO_LOCATION) is None
    looked_up = found.sites(np.array([NO_STACK, 3, 0], np.int32))
    assert looked_up[0] == looked_up[2] == NO_LOCATION
    assert found.location(int(looked_up[1])).file == "a.py"  # type: ignore[union-attr]


def test_no_stacks_at_all() -> None:
    found = SiteTable(StackTable.from_stacks([], []))
    assert found.sites(np.array([NO_STACK, NO_STACK], np.int32)).tolist() == [NO_LOCATION] * 2
    assert not found.has_cpp


def test_equal_lines_are_one_site_whatever_the_stack() -> None:
    found = table(["a.py", "x.py"], ["a.py", "y.py"])
    assert found.site_of[0] == found.site_of[1]


def test_frames_that_were_never_resolved_are_not_shown() -> None:
    stacks = StackTable.from_stacks([Frame("??", 0, "x"), Frame("a.py", 3, "f"), Frame("k.cpp", 0, "g")], [[0, 1, 2]])
    assert stack_text(stacks, 0) == ("a.py:3 f", "k.cpp:0 g")
    assert SiteTable(stacks).has_cpp
