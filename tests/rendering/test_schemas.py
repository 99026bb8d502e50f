"""Every JSON document has a schema, every schema is in the documents, and what commands write is what schemas say."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from oomscope.analysis import analyze
from oomscope.commands.common.errors import run
from oomscope.export import memory_viz
from oomscope.reading import load
from oomscope.rendering.json_report import render_json
from oomscope.rendering.schemas import schema_names, schema_text
from tests.export.exported import ALL, IDS
from tests.plan.programs import Program
from tests.samples import bundled_path, sample_path
from tests.shared import captures, needs_shared, recorded, shared_snapshot

PACKAGE = Path(__file__).resolve().parents[2] / "oomscope"
DOCUMENT = (PACKAGE / "docs" / "json.md").read_text(encoding="utf-8")
SCHEMAS = {name: json.loads(schema_text(name)) for name in schema_names()}
FRAGMENTED, TRAINED = str(sample_path("oom_fragmentation")), str(sample_path("train_ok"))
ACTIVATIONS = str(sample_path("oom_activations"))
MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB"
)


def recordings(folder: Path) -> list[str]:
    paths = []
    for batch in (4, 6):
        path = folder / f"b{batch}.pickle"
        path.write_bytes(memory_viz.to_pickle(Program().run([(batch, 128)] * 3)))
        paths.append(str(path))
    return paths


def planned(folder: Path) -> list[str]:
    shapes = ["--at", "batch=4,seq=128", "--at", "batch=6,seq=128"]
    return ["plan", *recordings(folder), *shapes, "--for", "batch=8..64", "--gpu", "2GiB", "--gpu", "A100-40"]


def logged(folder: Path) -> list[str]:
    (folder / "log").write_text(MESSAGE)
    return ["explain", str(folder / "log")]


def ranked(folder: Path) -> list[str]:
    for number, path in enumerate((FRAGMENTED, TRAINED, ACTIVATIONS)):
        shutil.copy(path, folder / f"job_rank{number}.pickle.xz")
    (folder / "job_rank3.pickle").write_text("no snapshot")
    return [str(folder)]


Command = Callable[[Path], list[str]]
WRITTEN: dict[str, list[Command]] = {
    "report": [
        lambda _: ["report", FRAGMENTED],
        lambda _: ["report", TRAINED, "--redact"],
        lambda _: ["report", str(bundled_path("oom_kept_exception"))],
    ],
    "whatif": [
        lambda _: ["whatif", FRAGMENTED, "--remedies"],
        lambda _: ["whatif", FRAGMENTED, "--setting", "expandable_segments:True", "--gpu", "40GiB"],
        lambda _: ["whatif", TRAINED, "--limit", "2GiB", "--redact"],
    ],
    "plan": [planned],
    "diff": [lambda _: ["diff", TRAINED, FRAGMENTED], lambda _: ["diff", TRAINED, TRAINED]],
    "check": [lambda _: ["check", TRAINED, "--max-peak", "1MiB", "--max-growth", "1MiB/pass"]],
    "ranks": [lambda folder: ["ranks", *ranked(folder)]],
    "triage": [lambda folder: ["triage", *ranked(folder)]],
    "explain": [logged],
    "summary": [lambda _: ["summary", FRAGMENTED], lambda _: ["summary", TRAINED, "--redact"]],
}


def closed(schema: Any) -> Any:
    """`schema`, in which every object has only the members that are named."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    is_object = isinstance(schema.get("properties"), dict) and schema.get("additionalProperties", True) is True
    return {**made, "additionalProperties": False} if is_object else made


def validated(name: str, text: str) -> Any:
    document = json.loads(text)
    jsonschema.Draft202012Validator(closed(SCHEMAS[name])).validate(document)
    return document


@pytest.mark.parametrize(("name", "command"), [(name, one) for name, several in WRITTEN.items() for one in several])
def test_what_a_command_writes_is_what_its_schema_says(
    name: str, command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    arguments = command(tmp_path)
    capsys.readouterr()
    assert run([*arguments, "-f", "json"]) in (0, 3)
    document = validated(name, capsys.readouterr().out)
    assert document["next"]


@pytest.mark.parametrize("options", [[], ["--redact"]])
def test_digests_are_what_their_schema_says(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["digest", *ranked(tmp_path), str(bundled_path("oom_activations")), *options]) == 0
    document = validated("digest", capsys.readouterr().out)
    assert len(document["files"]) == 4
    for one in document["files"]:
        assert sum(site["bytes"] for site in one["sites"]) + one["others"] == one["peak_allocated"]
        assert (one["headline"] is None) == (one["cause"] is None or bool(options))


def test_a_baseline_is_what_its_schema_says(tmp_path: Path):
    target = tmp_path / "memory.json"
    assert run(["check", TRAINED, "--save-baseline", str(target)]) == 0
    document = validated("baseline", target.read_text(encoding="utf-8"))
    assert document["sites"]


@pytest.mark.parametrize("path", [path for _, path in ALL], ids=IDS)
def test_a_report_of_each_sample_has_no_member_that_its_schema_does_not_describe(path: Path):
    validated("report", render_json(analyze(load(path), whatif=False)))


@needs_shared
@pytest.mark.parametrize("name", [*captures(), *recorded()])
def test_nor_has_one_of_a_real_run(name: str):
    validated("report", render_json(analyze(shared_snapshot(name), whatif=False)))


def test_every_kind_of_document_is_written_and_validated_here():
    assert set(WRITTEN) | {"digest", "baseline"} == set(SCHEMAS)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_and_the_documents_name_it_with_its_version(name: str):
    schema = SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"].startswith(f"oomscope {name}")
    (version,) = re.findall(
        rf"^\| `{name}` \| (\d+) \|.*\({re.escape(f'../rendering/{name}.schema.json')}\) \|$", DOCUMENT, re.M
    )
    assert int(version) == schema["properties"]["schema_version"]["const"]
    assert set(schema["required"]) <= set(schema["properties"])


def test_no_schema_is_anywhere_else_and_each_is_in_the_documents():
    found = {path.name.removesuffix(".schema.json") for path in PACKAGE.rglob("*.schema.json")}
    assert found == set(SCHEMAS)
    assert len(re.findall(r"^\| `\w+` \| \d+ \|", DOCUMENT, re.M)) == len(SCHEMAS)


def test_the_command_lists_all_and_prints_one(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert run(["schema"]) == 0
    out = capsys.readouterr().out
    assert all(re.search(rf"^{name} +version \d+  What ", out, re.M) for name in SCHEMAS), out
    assert run(["schema", "plan"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMAS["plan"]
    assert run(["schema", "digest", "-o", str(tmp_path / "d.json")]) == 0
    assert json.loads((tmp_path / "d.json").read_text()) == SCHEMAS["digest"]
    assert run(["schema", "-o", str(tmp_path / "all.json")]) == 2
    capsys.readouterr()
    assert run(["schema", "../report"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("Error: there is no schema")
    assert "report" in error
    assert error.count("\n") == 1
