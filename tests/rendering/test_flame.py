"""The flame graph draws the widest boxes of all."""

from __future__ import annotations

import pytest

from oomscope.analysis import Findings, analyze
from oomscope.model import Frame, FrameKind, frame_kind
from oomscope.rendering.html import flame as rules
from oomscope.rendering.html.flame import LEAST_SHARE, MOST_BOXES, Flame, flames, full_name, is_framework
from oomscope.rendering.html.lifetime_keys import keys_of
from tests.builders import block, frame, loaded, segment
from tests.samples import sample_findings

KIB = 1 << 10


def drawn(findings: Findings) -> Flame:
    (device,) = findings.devices
    shown, every = flames(device, findings.snapshot.stacks, keys_of(device), str)
    made = every or shown
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
    assert sum(box.full.startswith("deep") for box in made.boxes) == 60


def test_what_is_left_out_is_counted():
    made = drawn(broad_and_deep())
    leaves = sum(box.bytes for box in made.boxes if box.full.startswith("leaf"))
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
    made = flames(device, findings.snapshot.stacks, keys_of(device), str)[0]
    assert made is not None
    assert [(box.label.split(" ")[0], box.bytes) for box in made.boxes] == [("train", 4 * KIB), ("mlp", 4 * KIB)]
    assert (made.total, made.left_out) == (4 * KIB, KIB)
    assert len(drawn(findings).boxes) == 8


@pytest.mark.parametrize("name", ["oom_leak_total_loss", "oom_cuda_graphs", "ddp.rank0"])
@pytest.mark.parametrize("framework", [False, True])
def test_every_lifetime_knows_its_innermost_box(name: str, framework: bool):
    """Its path of boxes begins its stack, all of it where the key is even: at other instants the sums are exact."""
    findings = sample_findings(name)
    device, stacks = findings.main, findings.snapshot.stacks
    made = flames(device, stacks, keys_of(device), str)[framework]
    assert made is not None
    boxes, paths = (*made.boxes, *made.later), [()]
    for box, parent in zip(boxes, made.parents, strict=True):
        assert parent < len(paths) - 1
        paths.append((*paths[parent + 1], box.full))
    seen = set()
    for stack, key in sorted(set(zip(device.history.lifetimes.stack.tolist(), made.key.tolist(), strict=True))):
        assert stack not in seen
        seen.add(stack)
        frames = tuple(
            full_name(frame, str)
            for frame in stacks[stack][::-1]
            if frame_kind(frame.filename) is not FrameKind.CPP and (framework or not is_framework(frame.filename))
        )
        number, cut = divmod(key, 2)
        path = paths[number + 1] if number < len(boxes) else ()
        assert frames[: len(path)] == path
        assert bool(cut) == (len(path) < len(frames))


def test_what_lived_before_the_instant_has_boxes_too():
    findings = sample_findings("oom_cuda_graphs")
    device = findings.main
    made, _ = flames(device, findings.snapshot.stacks, keys_of(device), str)
    assert made is not None
    assert made.later
    live = device.history.lifetimes.allocated_at(device.at_entry)
    number = made.key // 2
    assert {int(at) for at in number[~live]} >= set(range(len(made.boxes), len(made.parents)))
    assert not {int(at) for at in number[live]} & set(range(len(made.boxes), len(made.parents)))
    cut = live & (made.key % 2 == 1)
    assert int(device.history.size[cut].sum()) == made.hidden


@pytest.mark.parametrize(
    ("room", "label"),
    [
        (1000, "forward (attention.py:98)"),
        (166, "forward (attention.py:98)"),
        (165, "forward :98"),
        (77, "forward :98"),
        (76, "forward"),
        (50, "forwa…"),
        (1, "f…"),
    ],
)
def test_a_label_is_as_much_as_fits(room: int, label: str) -> None:
    assert (rules.LETTER, rules.WIDE) == (6.4, 1164)
    assert rules._label(Frame("C:\\work\\attention.py", 98, "forward"), room) == label
