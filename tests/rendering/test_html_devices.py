"""Devices beside the main one: each with its memory, its history and its largest sites, and all of it bounded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from oomscope.analysis import Findings, analyze
from oomscope.reading import load
from oomscope.rendering.html.other_devices import MOST_DEVICES, MOST_SITES, other_devices
from oomscope.rendering.html.svg import StyleSheet
from oomscope.wording.paths import shortener
from tests.rendering.packed import unpacked

CAPTURE = Path(__file__).resolve().parents[1] / "recording" / "fixtures" / "two_devices.pickle.xz"
MOST_BYTES = 20_000


def two_devices() -> Findings:
    return analyze(load(CAPTURE), whatif=False)


def test_every_other_device_is_shown_and_adds_up():
    findings = two_devices()
    shown = other_devices(findings, shortener(findings.snapshot.stacks), StyleSheet())
    assert findings.main is not None
    assert [one.device.device for one in shown] == [0]
    assert findings.main.device == 1
    (other,) = shown
    assert sum(row.bytes for row in other.sites) + other.others == other.device.at.allocated
    assert len(other.sites) <= MOST_SITES
    assert other.timeline is not None
    rows = unpacked(other.data[other.timeline.name])
    assert rows[-1].allocated == other.device.history.curves.allocated[-1]
    assert len(other.timeline.svg) < MOST_BYTES


def test_there_are_never_too_many():
    findings = two_devices()
    many = replace(
        findings, devices=(*findings.devices, *(replace(findings.devices[0], device=n) for n in range(2, 40)))
    )
    assert len(other_devices(many, shortener(findings.snapshot.stacks), StyleSheet())) == MOST_DEVICES
