"""The flame graph draws the widest boxes of all."""

from __future__ import annotations

from oomscope.analysis import Findings, analyze
from oomscope.rendering.html.flame import LEAST_SHARE, MOST_BOXES, Flame, flame
from oomscope.rendering.html.lifetime_keys import keys_of
from tests.builders import block, frame, loaded, segment

KIB = 1 << 10


def drawn(findings: Findings) -> Flame:
    (device,) = findings.devices
    made = flame(device, findings.snapshot.stacks, keys_of(device), str)
    assert made is not None
    return made


def broad_and_deep() -> Findings:
    """More boxes than are drawn: many narrow ones near the root, and as many wide ones deep in one tower."""
    tower = [frame(f"deep{number}", number) for number in range(60)]
    narrow = [block(2 * KIB, frames=[frame(f"leaf{number}", number)]) for number in range(MOST_BOXES - 20)]
    return analyze(loaded([segment(0x7F00_0000_0000, [block(512 * KIB, frames=tower), *narrow])]), whatif=False)


def test_a_deep_wide_box_comes_before_many_narrow_ones():
    made = drawn(broad_and_deep())
    assert len(made.boxes) == MOST_BOXES
    assert sum(box.label.startswith("deep") for box in made.boxes) == 60


def test_what_is_left_out_is_counted():
    made = drawn(broad_and_deep())
    leaves = sum(box.bytes for box in made.boxes if box.label.startswith("leaf"))
    assert LEAST_SHARE * made.total <= 2 * KIB
    assert leaves + 512 * KIB + made.hidden == made.total


def test_callers_are_drawn_before_what_they_call():
    boxes = drawn(broad_and_deep()).boxes
    assert [box.bytes for box in boxes] == sorted((box.bytes for box in boxes), reverse=True)


def test_frames_of_the_framework_are_left_out_and_their_callees_join():
    torch = "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py"
    stacks = [
        [frame("mlp", 5), frame("forward", 7, torch), frame("_call_impl", line, torch), frame("train", 9)]
        for line in (1, 2)
    ]
    plain = [block(2 * KIB, frames=stack) for stack in stacks] + [block(KIB, frames=[frame("inside", 1, torch)])]
    findings = analyze(loaded([segment(0x7F00_0000_0000, plain)]), whatif=False)
    (device,) = findings.devices
    made = flame(device, findings.snapshot.stacks, keys_of(device), str, framework=False)
    assert made is not None
    assert [(box.label.split(" ")[0], box.bytes) for box in made.boxes] == [("train", 4 * KIB), ("mlp", 4 * KIB)]
    assert (made.total, made.left_out) == (4 * KIB, KIB)
    assert len(drawn(findings).boxes) == 8
