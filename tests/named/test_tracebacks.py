"""Lines behind generated code, and the forward behind a backward's blocks."""

from __future__ import annotations

import pytest

from oomscope.analysis import analyze
from oomscope.analysis.attribution.by_site import BACKWARD_OF
from oomscope.analysis.said.tracebacks import frames_in
from oomscope.model import Frame
from oomscope.redaction.snapshot import redact
from oomscope.wording.places import site_text
from tests.builders import block, entry, frame, loaded, segment

MIB = 1 << 20
FORWARD = [
    '  File "/workspace/train/train.py", line 45, in train\n    loss = model(x)\n',
    '  File "/workspace/train/model.py", line 31, in forward\n    return self.net(x)\n',
    '  File "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", line 134, in forward\n    F()\n',
]


def test_a_formatted_traceback_is_read_innermost_first():
    assert frames_in(FORWARD)[:2] == (
        Frame("/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", 134, "forward"),
        Frame("/workspace/train/model.py", 31, "forward"),
    )


@pytest.mark.parametrize(
    "text", ["", "no frame here", 'File "a", line 99999999999999999999, in f', 'File "' + "x" * 70_000]
)
def test_what_is_no_traceback_has_no_frames(text):
    assert frames_in([text]) == ()


def backward_snapshot(**extra):
    frames = [frame("backward", 353, "/venv/lib/python3.12/site-packages/torch/autograd/__init__.py")]
    at = 1 << 40
    made = entry("alloc", at, 4 * MIB, frames=frames, **extra)
    return loaded([segment(at, [block(4 * MIB, frames=frames)])], [[entry("segment_alloc", at, 4 * MIB), made]])


def test_a_backwards_block_gets_the_line_of_its_forward():
    findings = analyze(backward_snapshot(forward_frames=FORWARD), whatif=False)
    (use,) = findings.devices[0].sites
    assert use.site is not None
    assert (use.site.file, use.site.line, use.label) == ("/workspace/train/model.py", 31, BACKWARD_OF)
    assert site_text(use, lambda path: path.rpartition("/")[2]) == "forward (model.py:31) (its backward)"


def test_without_anomaly_mode_it_has_none():
    (use,) = analyze(backward_snapshot(), whatif=False).devices[0].sites
    assert (use.site, use.label) == (None, "backward")


GENERATED = frame(
    "forward",
    12,
    "/tmp/x/fx_generated__abc.py",
    fx_node_op="call_function",
    fx_original_trace='  File "/workspace/train/model.py", line 77, in forward\n    x = gelu(x)\n',
)


def fx_snapshot():
    frames = [GENERATED, frame("train", 45, "/workspace/train/train.py")]
    at = 1 << 40
    return loaded(
        [segment(at, [block(4 * MIB, frames=frames)])],
        [[entry("segment_alloc", at, 4 * MIB), entry("alloc", at, 4 * MIB, frames=frames)]],
    )


def test_generated_code_stands_for_the_line_it_was_made_from():
    (use,) = analyze(fx_snapshot(), whatif=False).devices[0].sites
    assert use.site is not None
    assert (use.site.file, use.site.line) == ("/workspace/train/model.py", 77)


def test_generated_code_without_its_line_is_no_site():
    frames = [frame("forward", 12, "/tmp/x/fx_generated__abc.py"), frame("train", 45, "/workspace/train/train.py")]
    at = 1 << 40
    snapshot = loaded([segment(at, [block(4 * MIB, frames=frames)])], [[entry("alloc", at, 4 * MIB, frames=frames)]])
    (use,) = analyze(snapshot, whatif=False).devices[0].sites
    assert use.site is not None
    assert (use.site.file, use.site.line) == ("/workspace/train/train.py", 45)


def test_a_redacted_copy_keeps_the_line_and_no_name_or_source():
    copy, _ = redact(fx_snapshot())
    (use,) = analyze(copy, whatif=False).devices[0].sites
    assert use.site is not None
    assert use.site.line == 77
    told = repr(copy.stacks.frames)
    assert "gelu" not in told
    assert "model.py" not in told
