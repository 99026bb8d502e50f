"""What the page lists agrees with the findings."""

from __future__ import annotations

from dataclasses import replace

from oomscope.analysis.records import NamedTensor
from oomscope.rendering.html.lifespans import lifespans
from oomscope.rendering.html.name_rows import name_rows
from tests.samples import SAMPLES, sample_findings


def test_tensors_that_read_the_same_are_one_row():
    device = sample_findings(SAMPLES[0]).devices[0]
    held = [NamedTensor("", "activation", 10, "float32", (2, 3), (f"train: outputs[{n}]",)) for n in range(4)]
    named = NamedTensor("model.weight", "parameter", 30, "float32", (5,))
    rows = name_rows(replace(device, names=(*held, named)))
    assert [(row.tensors, row.bytes) for row in rows] == [(4, 40), (1, 30)]
    assert rows[0].holders == ("train: outputs[…]",)
    assert rows[0].kind == "float32 [2, 3]"


def test_lives_hold_every_byte_that_was_allocated():
    for name in SAMPLES:
        for device in sample_findings(name).devices:
            found, table = lifespans(device), device.history.lifetimes
            if found is not None:
                born = (table.born >= 0) & (table.born <= device.at_entry)
                assert found.freed.sum() + found.live.sum() == device.history.size[born].sum()
                assert len(found.names) == len(found.freed) == len(found.live)
