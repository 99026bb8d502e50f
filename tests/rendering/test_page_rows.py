"""What the page lists agrees with the findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oomscope.analysis.attribution.by_site import ONLY_TORCH
from oomscope.analysis.attribution.records import Holder, NamedTensor
from oomscope.analysis.passes.records import Growth
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.html import holder_rows as holder_rows_module
from oomscope.rendering.html import notable_pins as notable_pins_module
from oomscope.rendering.html.lifespans import lifespans
from oomscope.rendering.html.lifetime_keys import keys_of
from oomscope.rendering.html.live_parts import live_parts
from oomscope.rendering.html.name_rows import name_rows
from oomscope.rendering.html.site_rows import SMALL, place_of, site_rows, without_small
from oomscope.rendering.html.surroundings import context_rows
from oomscope.wording.places import caller_or_site_text, site_text
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


def test_devices_are_named_by_the_index_that_the_recorder_writes():
    devices = [{"device": 0, "name": "A"}, {"device": 3, "name": "B"}]
    findings = sample_findings(SAMPLES[0])
    snapshot = replace(findings.snapshot, context={"devices": devices})
    rows = context_rows(replace(findings, snapshot=snapshot))
    assert ("cuda:0", "A") in rows
    assert ("cuda:3", "B") in rows


@pytest.mark.parametrize(
    ("stack", "said"), [((), "no stack recorded"), (("torch/x.py:1 f",), "inside torch, no frame of your code")]
)
def test_a_stack_that_is_all_torch_is_not_said_to_be_missing(stack: tuple[str, ...], said: str):
    device = sample_findings("oom_fragmentation").devices[0]
    assert device.oom is not None
    oom = replace(device.oom, site=None, caller=None, stack=stack)
    assert place_of(oom, str).text == said
    assert caller_or_site_text(oom, str) == said


def test_growth_of_a_stack_that_is_all_torch_says_so():
    found = Growth(None, None, ONLY_TORCH, 4 << 20, 12, 48 << 20, "generations", 0, 1.0)
    assert site_text(found, str) == "inside torch, no frame of your code"


def test_rows_that_are_worth_a_line_begin_at_a_thousandth():
    findings = sample_findings("oom_leak_total_loss")
    device = findings.devices[0]
    rows = site_rows(device, findings.snapshot.stacks, keys_of(device), str)
    third = rows[2].bytes
    assert without_small(rows, third * SMALL)[0][-1] == rows[2]
    shown, (count, left) = without_small(rows, third * SMALL + SMALL)
    assert third not in {row.bytes for row in shown}
    assert count == len(rows) - len(shown)
    assert sum(row.bytes for row in shown) + left == sum(row.bytes for row in rows)


def test_holders_that_are_worth_a_line_begin_at_a_thousandth():
    device = sample_findings("oom_leak_total_loss").devices[0]
    least = -(-device.at.allocated // holder_rows_module.LEAST)
    held = (Holder("a", "list", least, least, 1), Holder("b", "list", least, least - 1, 1))
    rows = holder_rows_module.holder_rows(replace(device, holders=held), live_parts(device, str), Sources())
    assert [row.holder.holder for row in rows] == ["a"]


def test_pins_that_are_worth_a_line_begin_at_a_fiftieth():
    device = sample_findings("oom_fragmentation").devices[0]
    least = -(-device.at.reserved // notable_pins_module.LEAST)
    pins = tuple(replace(device.pins[0], stranded_bytes=count) for count in (least, least - 1))
    assert notable_pins_module.notable_pins(replace(device, pins=pins)) == pins[:1]
