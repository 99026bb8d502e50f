"""The server for agents, spoken to by the SDK's own client over stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from oomscope.commands.agents.calls import as_call
from oomscope.commands.agents.opened import OpenedSnapshots
from oomscope.commands.agents.tools import Tools
from oomscope.commands.common.errors import FAILED, run
from oomscope.errors import OomscopeError
from oomscope.rendering.answers.bounded import DEFAULT
from tests.samples import BUNDLED, bundled_path

LEAK = str(bundled_path("oom_leak_in_validation"))
TRAINED = str(bundled_path("train_ok"))
RANKS = str(bundled_path("ddp.rank0")), str(bundled_path("ddp.rank1"))
MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB."
)
CALLS: dict[str, dict[str, Any]] = {
    "open": {"snapshot": LEAK},
    "verdict": {"snapshot": LEAK},
    "holders": {"snapshot": LEAK},
    "sites": {"snapshot": LEAK, "at": "peak"},
    "at_instant": {"snapshot": LEAK, "at": 100},
    "whatif": {"snapshot": LEAK, "settings": ["expandable_segments:True"]},
    "remedies": {"snapshot": TRAINED},
    "plan": {"snapshots": [TRAINED], "at": ["batch=4"], "wanted": ["batch=8"], "gpus": ["24GiB"]},
    "diff": {"before": RANKS[0], "after": RANKS[1]},
    "explain": {"text": MESSAGE},
}
TOOLS = tuple(CALLS)

Session = Callable[[Any], Awaitable[Any]]


def served(session: Session, *arguments: str) -> Any:
    """What `session` returns, given a client of a server that was started with `arguments`."""
    mcp = pytest.importorskip("mcp", reason="the extra [mcp] is not installed")
    stdio = pytest.importorskip("mcp.client.stdio")

    async def speak() -> Any:
        server = stdio.StdioServerParameters(command=sys.executable, args=["-m", "oomscope", "mcp", *arguments])
        async with mcp.Client(server) as client:
            return await session(client)

    return asyncio.run(speak())


def text_of(result: Any) -> str:
    assert len(result.content) == 1
    return str(result.content[0].text)


def test_every_tool_answers_over_stdio_within_four_kilobytes():
    async def session(client: Any) -> Any:
        tools = (await client.list_tools()).tools
        return tools, {name: await client.call_tool(name, asked) for name, asked in CALLS.items()}

    tools, results = served(session)
    assert tuple(tool.name for tool in tools) == TOOLS
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools)
    for name, result in results.items():
        assert not result.is_error, (name, text_of(result))
        assert len(text_of(result)) <= DEFAULT
        assert "next" in json.loads(text_of(result))
    assert json.loads(text_of(results["verdict"]))["cause"] == "growth"
    assert json.loads(text_of(results["whatif"]))["self_check"]["exact"] is True
    assert json.loads(text_of(results["explain"]))["messages"][0]["requested"] == 2 << 30


def test_more_bytes_are_had_on_request():
    tools = Tools(OpenedSnapshots())
    short, long = tools.holders(LEAK, max_bytes=1_500), tools.holders(LEAK, max_bytes=50_000)
    assert len(short) <= 1_500 < len(long)
    assert json.loads(short)["truncated"]["tensors"]["of"] == len(json.loads(long)["tensors"])


def test_refusals_are_one_line_and_the_server_goes_on(tmp_path: Path):
    secret = tmp_path / "notes.txt"
    secret.write_text("the password is swordfish\n")

    async def session(client: Any) -> Any:
        refused = [
            await client.call_tool("verdict", {"snapshot": str(secret)}),
            await client.call_tool("verdict", {"snapshot": str(tmp_path / "gone.pickle")}),
            await client.call_tool("verdict", {"snapshot": str(tmp_path)}),
            await client.call_tool("verdict", {"snapshot": "/dev/zero"}),
            await client.call_tool("sites", {"snapshot": LEAK, "at": "lunch"}),
            await client.call_tool("whatif", {"snapshot": LEAK, "settings": ["nonsense"]}),
            await client.call_tool("whatif", {"snapshot": LEAK, "without": ["nowhere.py:1"]}),
            await client.call_tool("whatif", {"snapshot": LEAK, "least_memory": "some"}),
            await client.call_tool("remedies", {"snapshot": LEAK, "names": ["prayer"]}),
            await client.call_tool("plan", {"snapshots": [TRAINED]}),
            await client.call_tool("diff", {"before": LEAK, "after": LEAK, "at": "noon"}),
            await client.call_tool("explain", {}),
        ]
        return refused, await client.call_tool("open", {"snapshot": LEAK})

    refused, after = served(session)
    for result in refused:
        assert result.is_error, text_of(result)
        assert "\n" not in text_of(result)
        assert "swordfish" not in text_of(result)
        assert len(text_of(result)) < 1_000
    assert not after.is_error


@pytest.mark.parametrize(
    "contents",
    [b"the password is swordfish\n", b'{"swordfish": 1, "user": {}}', b'["swordfish"]', b"<title>swordfish</title>",
     b"\x00\x01swordfish", pickle.dumps({"swordfish": 1}), pickle.dumps("swordfish"), pickle.dumps(["swordfish"])],
)  # fmt: skip
def test_of_a_file_that_is_no_snapshot_nothing_is_told(contents: bytes, tmp_path: Path):
    path = tmp_path / "notes"
    path.write_bytes(contents)
    with pytest.raises(OomscopeError) as refused:
        Tools(OpenedSnapshots()).open(str(path))
    assert "sword" not in str(refused.value)
    assert contents[:8].hex() not in str(refused.value)
    assert str(path) in str(refused.value)


def test_only_files_below_the_roots_are_read(tmp_path: Path):
    inside = tmp_path / "dumps"
    inside.mkdir()
    (inside / "oom.pickle").write_bytes(Path(LEAK).read_bytes())
    (inside / "way_out.pickle").symlink_to(LEAK)
    tools = Tools(OpenedSnapshots((inside,)))
    assert json.loads(tools.open(str(inside / "oom.pickle")))["entries"] > 0
    for outside in (LEAK, str(inside / "way_out.pickle"), str(inside / ".." / "dumps" / "way_out.pickle")):
        with pytest.raises(OomscopeError, match="outside the folders"):
            tools.open(outside)
    with pytest.raises(OomscopeError, match="outside the folders"):
        tools.explain(log=LEAK)


def test_redacted_answers_name_nothing_and_agree_between_files():
    tools = Tools(OpenedSnapshots(redact=True))
    said = tools.verdict(LEAK, max_bytes=50_000) + tools.sites(LEAK, max_bytes=50_000)
    said += tools.diff(*RANKS, max_bytes=50_000)
    for name in ("gpt.py", "metric.outputs", "loss_of", "/workspace"):
        assert name not in said.replace(LEAK, "").replace(RANKS[0], "").replace(RANKS[1], "")
    with pytest.raises(OomscopeError, match="cannot be redacted"):
        tools.explain(log=LEAK)


def test_a_file_is_read_again_when_it_has_changed(tmp_path: Path):
    path = tmp_path / "oom.pickle"
    path.write_bytes(Path(LEAK).read_bytes())
    tools = Tools(OpenedSnapshots())
    before = json.loads(tools.open(str(path)))["entries"]
    path.write_bytes(Path(TRAINED).read_bytes())
    assert json.loads(tools.open(str(path)))["entries"] != before


@pytest.mark.parametrize("name", BUNDLED)
def test_every_call_that_an_answer_suggests_is_served(name: str):
    tools = Tools(OpenedSnapshots())
    by_name = {tool.__name__: tool for tool in tools.all}
    for call in json.loads(tools.verdict(str(bundled_path(name))))["next"]:
        if "tool" in call:
            assert "schema_version" in json.loads(by_name[call["tool"]](**call["arguments"]))
        else:
            assert call["run"].startswith("oomscope run")


def test_commands_become_calls():
    assert as_call("oomscope run train.py", ["a"]) == {"run": "oomscope run train.py"}
    assert as_call("oomscope report SNAPSHOT --at peak", ["a"]) == {
        "tool": "at_instant",
        "arguments": {"snapshot": "a", "at": "peak"},
    }
    assert as_call("oomscope diff BEFORE AFTER", ["a", "b"]) == {
        "tool": "diff",
        "arguments": {"before": "a", "after": "b"},
    }
    assert as_call("oomscope report FILE", ["a"]) is None
    assert as_call("oomscope report SNAPSHOT", []) is None


def test_without_the_sdk_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: Any):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    assert run(["mcp"]) == FAILED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "pip install 'oomscope[mcp]'" in err


def test_the_server_ends_with_its_input():
    pytest.importorskip("mcp", reason="the extra [mcp] is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "oomscope", "mcp"], input="", capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
