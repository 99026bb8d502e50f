"""Short documents: they stay within their bytes, say what they left out, and agree with the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.analysis import analyze
from oomscope.reading import load
from oomscope.rendering.answers.bounded import LEAST, bounded
from oomscope.rendering.answers.memory import at_instant, holders, sites
from oomscope.rendering.answers.verdict import SUMMARY_SCHEMA, opened, summary, verdict
from oomscope.rendering.json_report import as_document
from tests.rendering.hostile import hostile_findings
from tests.samples import BUNDLED, SAMPLES, bundled_path, sample_findings

ANSWERS = (opened, verdict, summary, holders, sites, at_instant)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("answer", ANSWERS)
def test_every_answer_is_json_with_next_and_fits(name: str, answer: Any):
    document = answer(sample_findings(name))
    assert document["schema_version"] == 2
    assert all(command.startswith("oomscope ") for command in document["next"])
    for most in (LEAST, 2_000, 4_000):
        text = bounded(document, most)
        assert len(text) <= most
        read = json.loads(text)
        for left, count in read.get("truncated", {}).items():
            assert count is None or (len(read[left]), len(document[left])) == (count["shown"], count["of"])


@pytest.mark.parametrize("name", [*SAMPLES, *BUNDLED])
def test_a_summary_is_as_its_schema_has_it(name: str):
    validator = jsonschema.Draft202012Validator(json.loads(SUMMARY_SCHEMA.read_text(encoding="utf-8")))
    validator.check_schema(validator.schema)
    findings = sample_findings(name) if name in SAMPLES else analyze(load(bundled_path(name)), whatif=False)
    found = summary(findings)
    assert [error.message for error in validator.iter_errors(found)] == []
    assert found.keys() <= validator.schema["properties"].keys()
    assert sum(row["bytes"] for row in found["in_use"]) == found["allocated"]


@pytest.mark.parametrize("name", SAMPLES)
def test_answers_agree_with_the_report(name: str):
    findings = sample_findings(name)
    report = as_document(findings)
    device = next(one for one in report["devices"] if one["device"] == report["at"]["device"])
    assert sites(findings)["allocated"] == device["at"]["allocated"]
    rows = sites(findings)
    assert sum(row["bytes"] for row in rows["sites"]) + rows["unaccounted"] == device["at"]["allocated"]
    held = holders(findings)
    assert (held["holders"] or []) == [] or len(held["holders"]) == len(device["holders"])
    assert sum(row["bytes"] for row in held["tensors"] or []) == sum(one.bytes for one in findings.main.names)
    if device["oom"] is not None:
        said = verdict(findings)
        assert said["cause"] == device["oom"]["verdict"]["cause"]
        advised = [one for one in device["oom"]["verdict"]["advice"] if not one["refuted"]]
        assert [one["slug"] for one in said["fixes"]] == [one["slug"] for one in advised]
        assert [one["enough"] for one in said["fixes"]] == [one["enough"] for one in advised]


def test_the_first_lists_are_cut_last():
    document = {"a": ["x" * 100] * 5, "b": ["y" * 100] * 30, "c": 1, "next": ["oomscope demo"]}
    read = json.loads(bounded(document, 1_000))
    assert len(read["a"]) == 5
    assert read["truncated"] == {"b": {"shown": len(read["b"]), "of": 30}}
    assert read["next"] == ["oomscope demo"]


def test_long_texts_are_cut_only_where_rows_are_not_enough():
    read = json.loads(bounded({"verdict": "v" * 5_000, "rows": [1, 2, 3], "next": []}, 1_000))
    assert read["verdict"].endswith("…")
    assert read["rows"]


@given(
    st.dictionaries(
        st.text(max_size=20),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=300),
            lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=9), inner, max_size=9),
            max_leaves=60,
        ),
        max_size=20,
    ),
    st.integers(-5, 3_000),
)
def test_any_document_fits(document: dict[str, Any], most: int):
    text = bounded({**document, "next": []}, most)
    json.loads(text)
    assert len(text) <= max(most, LEAST)
    assert text.isascii()


@pytest.mark.parametrize("answer", ANSWERS)
def test_foreign_names_are_one_line_of_text(answer: Any):
    text = bounded(answer(hostile_findings()), 200_000)
    assert text.isprintable()
    assert len(bounded(answer(hostile_findings()))) <= 4_000
    assert all(one.isprintable() for one in texts(json.loads(text)))


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)
