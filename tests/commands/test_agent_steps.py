"""What an agent is told to do next leads to the change that the cause asks for, on captures of real programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from oomscope.commands.agents.opened import OpenedSnapshots
from oomscope.commands.agents.tools import Tools

PROGRAMS = Path(__file__).parents[1] / "captures" / "programs"


@pytest.fixture(scope="module")
def tools() -> Tools:
    return Tools(OpenedSnapshots())


def answer(tools: Tools, name: str, path: str, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(getattr(tools, name)(str(PROGRAMS / f"{path}.pickle.xz"), **arguments))
    return found


def calls(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The arguments of what is suggested next, without the file; commands for a shell as they are."""
    return [
        {key: value for key, value in call["arguments"].items() if key != "snapshot"} if "arguments" in call else call
        for call in document["next"]
    ]


def test_the_setting_that_is_advised_is_the_first_thing_to_prove(tools: Tools) -> None:
    verdict = answer(tools, "verdict", "lidar_merge")
    assert verdict["fixes"][0]["slug"] == "allocator_setting"
    assert calls(verdict)[0] == {"settings": ["expandable_segments:True"]}


def test_what_is_said_not_to_help_is_not_served_when_it_is_replayed(tools: Tools) -> None:
    """`empty_cache` after each step was not replayed for the verdict, and would have served this request."""
    rows = answer(tools, "whatif", "lidar_merge", max_bytes=20_000)["whatif"]
    assert any(row["setting"].startswith("empty_cache after") and row["oom"] is False for row in rows)
    assert "torch.cuda.empty_cache()" not in answer(tools, "verdict", "lidar_merge")["would_not_help"]


def test_where_memory_grows_no_higher_limit_is_suggested(tools: Tools) -> None:
    verdict = answer(tools, "verdict", "captions")
    assert (verdict["cause"], calls(verdict)) == ("growth", [{"free_each_step": ["captions.py:12"]}])


def test_an_edit_that_helps_is_followed_by_a_run_of_the_changed_program(tools: Tools) -> None:
    proof = answer(tools, "whatif", "captions", free_each_step=["captions.py:12"])
    assert [row["oom"] for row in proof["whatif"]] == [True, False]
    assert calls(proof)[0] == {"run": "oomscope run PROGRAM"}
    assert not any("limit" in call for call in calls(proof))


def test_what_grows_after_the_last_step_is_left_out_for_it_is_freed_at_no_steps_end(tools: Tools) -> None:
    (call,) = calls(answer(tools, "verdict", "after_training"))
    assert call == {"without": ["after_training.py:22"]}
    assert answer(tools, "whatif", "after_training", **call)["whatif"][1]["oom"] is False


def test_an_edit_that_changed_nothing_proves_nothing(tools: Tools) -> None:
    """Nothing outlives a step there, so that the other setting of the row is all that helped."""
    proof = answer(tools, "whatif", "after_training", free_each_step=["after_training.py:22"])
    assert any(row["oom"] is False for row in proof["whatif"])
    assert {"run": "oomscope run PROGRAM"} not in calls(proof)
