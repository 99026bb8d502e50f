"""``oomscope plan``: what it prints, and what it refuses."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from oomscope.commands.common.errors import DONE, FAILED, USAGE, run
from oomscope.export import memory_viz
from tests.plan.programs import Program
from tests.verdict.known import programs


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("plan")
    paths = []
    for batch in (4, 6):
        path = folder / f"b{batch}.pickle"
        path.write_bytes(memory_viz.to_pickle(Program().run([(batch, 128)] * 3)))
        paths.append(str(path))
    noted = folder / "noted.pickle"
    document = pickle.loads(memory_viz.to_pickle(Program().run([(4, 128), (6, 128), (6, 128)], noted=True)))
    noted.write_bytes(pickle.dumps(document))
    return [*paths, str(noted)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


BOTH = ["--at", "batch=4,seq=128", "--at", "batch=6,seq=128"]


def test_text_shows_peaks_a_figure_and_what_fits(files: list[str], capsys: pytest.CaptureFixture[str]):
    assert run(["plan", *files[:2], *BOTH, "--for", "batch=8..64", "--gpu", "4GiB"]) == DONE
    out = capsys.readouterr().out
    assert "From b4.pickle (batch=4, seq=128), b6.pickle (batch=6, seq=128)." in out
    assert "Peak memory at other shapes (seq=128)" in out
    assert [out.count(text) for text in ("batch=64 ", "batch=64, seq=128")] == [1, 1], "in the table, and in the figure"
    assert "- 4GiB, at seq=128: batch=" in out
    assert "█" in out
    assert "What fits" in out


def test_json_has_the_promised_names(files: list[str], capsys: pytest.CaptureFixture[str]):
    assert run(["plan", *files[:2], *BOTH, "--for", "batch=16", "--gpu", "A100-40", "-f", "json"]) == DONE
    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == 1
    assert [(one["file"], one["at"]["batch"]) for one in document["from"]] == [("b4.pickle", 4), ("b6.pickle", 6)]
    row = document["predictions"][0]
    assert row["for"] == {"batch": 16, "seq": 128}
    assert row["peak_allocated"]["low"] <= row["peak_allocated"]["bytes"] <= row["peak_allocated"]["high"]
    assert row["peak_reserved"]["low"] <= row["peak_reserved"]["bytes"] <= row["peak_reserved"]["high"]
    assert row["cards"][0]["fits"] is True
    assert row["cards"][0]["headroom"] > 0
    assert {"gpu", "parameter", "value"} <= set(document["largest"][0])
    assert set(document["alignment"]) >= {"matched", "unmatched", "notes"}


def test_markdown_says_what_is_the_same_in_all_shapes_above_the_table(
    files: list[str], capsys: pytest.CaptureFixture[str]
):
    assert run(["plan", *files[:2], *BOTH, "--for", "batch=8..64", "-f", "md"]) == DONE
    said, table = capsys.readouterr().out.split("Peak memory at other shapes")
    assert said.startswith("### What fits")
    assert table.startswith(" (seq=128):\n\n| shape ")


@pytest.mark.parametrize(("form", "begins"), [("md", "### What fits"), ("svg", "<?xml")])
def test_other_formats(files: list[str], form: str, begins: str):
    arguments = ["plan", *files[:2], *BOTH, "--for", "batch=8..64", "--gpu", "2GiB", "-f", form, "-o", "out"]
    assert run(arguments) == DONE
    assert Path("out").read_text(encoding="utf-8").startswith(begins)
    assert run(arguments) == FAILED  # not without --force


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--for", "batch=8", "--at", "batch=4"], USAGE),
        (["--at", "batch=4", "--at", "batch=6"], USAGE),
        (["--for", "batch", *BOTH], USAGE),
        (["--for", "batch=8", "--gpu", "toaster", *BOTH], USAGE),
        (["--for", "side=8", *BOTH], FAILED),
        (["--for", "batch=8"], FAILED),
        (["--for", "batch=8", *BOTH, "--setting", "nonsense:1"], FAILED),
    ],
)
def test_refusals_are_one_line(files: list[str], capsys: pytest.CaptureFixture[str], arguments: list[str], code: int):
    assert run(["plan", *files[:2], *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1


def test_a_cap_is_asked_for_as_a_card_is(files: list[str], capsys: pytest.CaptureFixture[str]):
    asked = ["plan", *files[:2], *BOTH, "--for", "batch=8..64", "--limit", "1GiB", "--gpu", "4GiB", "-f", "json"]
    assert run(asked) == DONE
    document = json.loads(capsys.readouterr().out)
    card, cap = document["predictions"][0]["cards"]
    assert (card["gpu"], cap["gpu"], cap["capacity"]) == ("4GiB", "cap 1.00 GiB", 1 << 30)
    found = {one["gpu"]: one["value"] for one in document["largest"] if one["parameter"] == "batch"}
    assert 0 < found["cap 1.00 GiB"] < found["4GiB"]


def test_a_cap_that_is_no_size_is_wrong_usage(files: list[str], capsys: pytest.CaptureFixture[str]):
    assert run(["plan", *files[:2], *BOTH, "--for", "batch=8", "--limit", "plenty"]) == USAGE
    assert "--limit" in capsys.readouterr().err


def test_of_a_run_that_failed_under_a_cap_lower_bounds_are_told_and_nothing_fits(capsys: pytest.CaptureFixture[str]):
    failed = str(programs()["note_completion"].path)
    assert run(["plan", failed, "--at", "batch=96", "--for", "batch=48"]) == DONE
    out = capsys.readouterr().out
    assert "At least so much memory at other shapes" in out
    assert "≥" in out
    assert "cap 8.00 GiB" in out
    assert "yes" not in out
    assert "Record one run at a smaller value that comes to its end" in " ".join(out.split())


def test_what_is_drawn_of_lower_bounds_says_so_and_draws_no_reserved_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    failed, figure = str(programs()["note_completion"].path), tmp_path / "p.svg"
    asked = ["plan", failed, "--at", "batch=96", "--for", "batch=40..48..8"]
    assert run(asked) == DONE
    bars = [line for line in capsys.readouterr().out.splitlines() if "█" in line]
    assert len(bars) == 2
    assert all("≥ " in line for line in bars)
    assert run([*asked, "-f", "svg", "-o", str(figure)]) == DONE
    assert "allocated, at least" in figure.read_text()
    assert "reserved" not in figure.read_text()
