"""The JSON report keeps its promises: its schema, its sums, null for the unknown."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from oomscope.analysis import Findings, analyze
from oomscope.rendering.json_report import MAX_SITES, SCHEMA, as_document, plain, render_json
from tests.rendering.hostile import hostile_findings
from tests.samples import SAMPLES, sample_findings
from tests.shared import captures, needs_shared, public, shared_snapshot

VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def check(findings: Findings) -> None:
    document = json.loads(render_json(findings))
    VALIDATOR.validate(document)
    for device in document["devices"]:
        allocated = device["at"]["allocated"]
        assert len(device["sites"]) <= MAX_SITES
        assert sum(site["bytes"] for site in device["sites"]) == allocated
        assert sum((device["categories"] or {"none": allocated}).values()) == allocated
        assert sum((device["phases"] or {"none": allocated}).values()) == allocated
        free = device["fragmentation"]
        assert free["releasable"] + free["walled"] + free["stranded"] == free["inactive"]


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(VALIDATOR.schema)


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_fit_the_schema_and_add_up(name: str):
    check(sample_findings(name))


@needs_shared
@pytest.mark.parametrize("name", [*captures(), *public()])
def test_real_captures_fit_the_schema_and_add_up(name: str):
    if name in SAMPLES:
        pytest.skip("tested as a sample")
    check(analyze(shared_snapshot(name), whatif=False))


def test_hostile_names_stay_plain_ascii():
    text = render_json(hostile_findings())
    assert text.isascii()
    check(hostile_findings())


def test_more_than_a_hundred_sites_end_in_all_others():
    findings = sample_findings("oom_fragmentation")
    device = findings.devices[0]
    site = device.sites[0]
    many = tuple(replace(site, bytes=1, blocks=1) for _ in range(150))
    rows = as_document(replace(findings, devices=(replace(device, sites=many),)))["devices"][0]["sites"]
    assert len(rows) == MAX_SITES
    assert [row["label"] for row in rows[-2:]] == ["all others", "not accounted for"]
    assert sum(row["bytes"] for row in rows) == device.at.allocated


def test_a_row_without_frames_has_a_null_file_and_says_why():
    sites = as_document(sample_findings("oom_leak_total_loss"))["devices"][0]["sites"]
    without = next(site for site in sites if site["site"]["file"] is None)
    assert without["label"]


def test_what_is_no_number_is_null():
    assert plain({"fit": float("nan")}) == {"fit": None}
