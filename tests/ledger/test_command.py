"""``oomscope whatif --remedies``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oomscope.commands.common.errors import DONE, FAILED, USAGE, run
from oomscope.export import memory_viz
from tests.plan.programs import Program
from tests.samples import sample_path


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("ledger") / "calm.pickle"
    path.write_bytes(memory_viz.to_pickle(Program().run([(8, 256)] * 3)))
    return str(path)


def test_json_has_the_promised_names(calm: str, capsys: pytest.CaptureFixture[str]):
    assert run(["whatif", calm, "--remedies", "-f", "json"]) == DONE
    document = json.loads(capsys.readouterr().out)
    assert {row["slug"] for row in document["remedies"]} >= {"sgd", "checkpoint", "accumulate"}
    for row in document["remedies"]:
        assert set(row) == {"slug", "value", "peak_allocated", "saves_bytes", "enough", "price", "how", "basis"}
        assert row["peak_allocated"]["low"] <= row["peak_allocated"]["bytes"] <= row["peak_allocated"]["high"]
        assert row["basis"] in ("replayed", "estimated")
        assert row["how"]


def test_single_remedies_are_answered_with_their_value(calm: str, capsys: pytest.CaptureFixture[str]):
    assert run(["whatif", calm, "--remedy", "accumulate=4", "--remedy", "sgd", "-f", "json"]) == DONE
    rows = json.loads(capsys.readouterr().out)["remedies"]
    assert {(row["slug"], row["value"]) for row in rows} == {("accumulate", 4), ("sgd", None)}


@pytest.mark.parametrize("form", ["text", "md"])
def test_people_see_what_it_saves_how_and_at_which_price(calm: str, capsys: pytest.CaptureFixture[str], form: str):
    assert run(["whatif", calm, "--remedies", "-f", form]) == DONE
    out = capsys.readouterr().out
    assert "Remedies for the peak" in out
    assert "torch.optim.SGD(parameters, lr)" in out
    assert "Price:" in out
    assert "Enough" not in out  # nothing failed


def test_a_failed_request_is_counted_and_the_verdict_shown(capsys: pytest.CaptureFixture[str]):
    assert run(["whatif", str(sample_path("oom_activations")), "--remedies"]) == DONE
    out = capsys.readouterr().out
    assert "with the request that failed" in out
    assert "enough" in out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--remedy", "prayer"], USAGE),
        (["--remedy", "sgd=3"], USAGE),
        (["--remedy", "set_to_none"], FAILED),
    ],
)
def test_refusals_are_one_line(calm: str, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int):
    assert run(["whatif", calm, *arguments]) == code
    err = capsys.readouterr().err
    assert err.startswith("Error: ")
    assert err.count("\n") == 1


def test_another_limit_decides_what_is_enough(calm: str, capsys: pytest.CaptureFixture[str]):
    def answers(limit: str) -> dict[str, bool | None]:
        assert run(["whatif", calm, "--remedies", "--limit", limit, "-f", "json"]) == DONE
        return {row["slug"]: row["enough"] for row in json.loads(capsys.readouterr().out)["remedies"]}

    assert set(answers("1GiB").values()) == {True}
    assert set(answers("8MiB").values()) == {False}
    some = answers("200MiB")
    assert some["checkpoint"] is True
    assert run(["whatif", calm, "--remedies", "--limit", "200MiB"]) == DONE
    assert "Limit: 200 MiB." in capsys.readouterr().out
