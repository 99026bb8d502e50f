"""The JSON report keeps its promises: its schema, its sums, null for the unknown."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import jsonschema
import pytest

from oomscope.analysis import Findings, analyze
from oomscope.analysis.attribution.records import NamedTensor
from oomscope.commands.common.errors import run
from oomscope.rendering.json_plain import dumped, plain
from oomscope.rendering.json_report import MAX_NAMES, MAX_SITES, SCHEMA, as_document, render_json
from tests.rendering.hostile import hostile_findings
from tests.samples import SAMPLES, sample_findings, sample_path
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


@pytest.mark.parametrize(
    ("sites", "missing", "rows", "last"),
    [
        (99, 0, 99, [None]),
        (100, 0, 100, [None]),
        (101, 0, 100, ["all_others"]),
        (99, 5, 100, [None, "unaccounted"]),
        (100, 5, 100, ["all_others", "unaccounted"]),
        (150, 5, 100, ["all_others", "unaccounted"]),
    ],
)
def test_there_are_at_most_a_hundred_rows_of_sites_that_sum_to_all(
    sites: int, missing: int, rows: int, last: list[str | None]
):
    findings = sample_findings("oom_fragmentation")
    device = findings.devices[0]
    site = replace(device.sites[0], label=None, bytes=1, blocks=1)
    at = replace(device.at, allocated=sites + missing)
    shown = replace(device, sites=(site,) * sites, at=at)
    found = as_document(replace(findings, devices=(shown,)))["devices"][0]["sites"]
    assert len(found) == rows <= MAX_SITES
    assert [row["label_code"] for row in found[-len(last) :]] == last
    assert sum(row["bytes"] for row in found) == sites + missing


def test_a_note_is_there_in_words_and_as_a_code():
    recording = as_document(sample_findings("train_ok"))["snapshot"]["recording"]
    assert len(recording["notes"]) == len(recording["note_codes"])
    assert recording["note_codes"][0]["code"] == "recording.full"
    assert recording["note_codes"][0]["values"]["entries"] > 0


def test_a_row_without_frames_has_a_null_file_and_says_why():
    sites = as_document(sample_findings("oom_leak_total_loss"))["devices"][0]["sites"]
    without = next(site for site in sites if site["site"]["file"] is None)
    assert without["label"]


def test_what_is_no_number_is_null():
    assert plain({"fit": float("nan")}) == {"fit": None}


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2, {"b": None}], "c": {}, "d": "x" * 500, "e": [], "f": [{"g": "y" * 190}, 2.5, True]},
        list(range(1000)),
        "é\u202e",
    ],
)
def test_short_json_is_the_same_json(value: object):
    assert json.loads(dumped(value)) == value
    assert dumped(value).isascii()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_report_repeats_little(name: str):
    """The failed request that matters stands in full once, and records take a line each."""
    findings = sample_findings(name)
    assert len(render_json(findings)) < 60_000
    for device, shown in zip(as_document(findings)["devices"], findings.devices, strict=True):
        assert len(device["ooms"]) == len(shown.ooms)
        assert all(set(oom) == set(device["oom"]) for oom in device["ooms"])
        assert all(set(oom["verdict"]) == set(device["oom"]["verdict"]) for oom in device["ooms"])
        assert device["oom"] is None or device["oom"] in device["ooms"]


def test_the_largest_names_are_there_and_the_rest_is_counted():
    findings = sample_findings("oom_fragmentation")
    named = tuple(NamedTensor(f"t{number}", "parameter", 1000 - number) for number in range(MAX_NAMES + 3))
    shown = replace(findings, devices=(replace(findings.devices[0], names=named),))
    device = as_document(shown)["devices"][0]
    assert len(device["names"]) == MAX_NAMES
    assert device["names_left_out"] == {"tensors": 3, "bytes": 500 + 499 + 498}
    assert as_document(findings)["devices"][0]["names_left_out"] is None


def test_steps_have_the_names_that_the_page_shows():
    device = as_document(sample_findings("oom_leak_total_loss"))["devices"][0]
    last = device["steps"]["steps"][-1]
    assert last["begin"] <= device["oom"]["entry"] <= last["end"]
    assert device["oom"]["step"] == last["name"] == "33"
    peak = device["peak"]
    step = next(step for step in device["steps"]["steps"] if step["name"] == peak["step"])
    assert step["begin"] <= peak["allocated_entry"] <= step["end"]


@pytest.mark.parametrize("name", SAMPLES)
def test_what_to_run_next_can_be_run(name: str, capsys: pytest.CaptureFixture[str]):
    commands = as_document(sample_findings(name))["next"]
    assert commands[0].startswith("oomscope whatif SNAPSHOT")
    assert commands[-1] == "oomscope run PROGRAM"
    for command in commands[:-1]:
        program, *arguments = shlex.split(command.replace("SNAPSHOT", shlex.quote(str(sample_path(name)))))
        assert program == "oomscope"
        quick = ["--least-memory", "none"] if "--least-memory" not in arguments else []
        assert run([*arguments, *quick]) == 0, (command, capsys.readouterr().err)
