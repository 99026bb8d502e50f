"""Real recordings with an edit put into one of them: lines moved, a file renamed, another root, a tensor kept."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest

from oomscope.analysis.compare.diff import compare
from oomscope.export import memory_viz
from oomscope.model import Snapshot
from oomscope.reading import load
from tests.builders import block, segment
from tests.compare.test_seeded import assert_adds_up
from tests.shared import needs_shared, shared_snapshot

pytestmark = needs_shared
MIB = 1 << 20
KEPT = 24 * MIB


def edited(snapshot: Snapshot, *, source: str, keeps: bool) -> tuple[Snapshot, int]:
    """`snapshot` of a program that was edited, and how many tensors it now keeps.

    All lines below the tenth of every file moved by five, `source` is called ``finetune.py``, everything lies in other
    folders; and where it `keeps`, one tensor of 24 MiB a step stays, made by a line after the forward pass.
    """
    document = pickle.loads(memory_viz.to_pickle(snapshot))
    trace = next(one for one in document["device_traces"] if one)
    frames = _distinct([one.get("frames", []) for one in trace] + _block_frames(document))
    for one in frames:
        name = one["filename"].replace(f"/{source}", "/finetune.py")
        one["filename"] = name.replace("/home/user/", "/root/jobs/17/").replace("/workspace/train/", "/data/x/")
        if "/torch/" not in name and one["line"] > 10:
            one["line"] += 5
    kept = _keep(document, trace) if keeps else 0
    return load(io.BytesIO(pickle.dumps(document))), kept


def _distinct(stacks: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return list({id(frame): frame for stack in stacks for frame in stack}.values())


def _block_frames(document: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [piece.get("frames", []) for one in document["segments"] for piece in one["blocks"]]


def _keep(document: dict[str, Any], trace: list[dict[str, Any]]) -> int:
    """Put an allocation that is never freed after every step's first input."""
    own = next(one["frames"] for one in trace if one["action"] == "alloc" and _is_input(one))
    outer = next(frame for frame in own if "finetune.py" in frame["filename"])
    stack = [
        {"name": "detach", "filename": "/v/site-packages/torch/_tensor.py", "line": 9},
        {**outer, "name": "keep_for_later", "line": 400},
        outer,
    ]
    at = [number for number, one in enumerate(trace) if one["action"] == "alloc" and one["frames"] == own]
    for count, number in enumerate(reversed(at)):
        address = (1 << 50) + count * 32 * MIB
        entry = {**trace[number], "addr": address, "size": KEPT, "frames": stack}
        trace.insert(number + 1, {**entry, "action": "segment_alloc"})
        trace.insert(number + 2, entry)
        document["segments"].append(segment(address, [block(KEPT, frames=stack)]))
    return len(at)


def _is_input(entry: dict[str, Any]) -> bool:
    innermost = next((one for one in entry["frames"] if "site-packages" not in one["filename"]), None)
    return innermost is not None and "finetune.py" in innermost["filename"] and entry["size"] < MIB


PAIRS = [
    ("plan/llama.base", "plan/llama.base", "train.py", None),
    ("plan/llama.base", "plan/llama.b6", "train.py", 1.5),
    ("plan/resnet.base", "plan/resnet.b48", "train.py", 1.5),
    ("ddp.rank0", "ddp.rank1", "workloads.py", 3.25),
    ("train_ok", "train_ok.expandable", "workloads.py", None),
]


@pytest.mark.parametrize(("before", "after", "source", "factor"), PAIRS)
def test_an_edit_alone_makes_nothing_new(before: str, after: str, source: str, factor: float | None):
    changed, _ = edited(shared_snapshot(after), source=source, keeps=False)
    plain = compare(shared_snapshot(before), shared_snapshot(after), at="peak")
    found = compare(shared_snapshot(before), changed, at="peak")
    assert_adds_up(found)
    assert [row for row in found.sites if row.matched in ("new", "gone")] == []
    assert sorted(row.change for row in found.sites) == sorted(row.change for row in plain.sites)
    assert (found.scaling and found.scaling.factor) == factor


@pytest.mark.parametrize(("before", "after", "source", "factor"), PAIRS)
def test_a_tensor_that_is_kept_a_step_is_the_first_row(before: str, after: str, source: str, factor: float | None):
    changed, kept = edited(shared_snapshot(after), source=source, keeps=True)
    assert kept >= 2
    found = compare(shared_snapshot(before), changed, at="end")
    assert_adds_up(found)
    first = found.sites[0]
    assert first.site is not None
    assert (first.site.function, first.matched, first.change) == ("keep_for_later", "new", kept * KEPT)
    assert [row for row in found.sites[1:] if row.matched == "new"] == []
    at_peak = compare(shared_snapshot(before), changed, at="peak").sites[0]
    assert at_peak.site is not None
    assert at_peak.site.function == "keep_for_later"
