"""The recordings that were made on a GPU: they are what the dump promises to be, and readable."""

from __future__ import annotations

import lzma
import pickle
import pickletools
from pathlib import Path

import pytest

import oomscope

FOLDER = Path(__file__).parent / "fixtures"
HOLDERS = {
    "leak_total_loss": "leak_total_loss: total_loss",
    "leak_hook": "leak_hook: model.blocks[2].captured",
    "leak_cycle": "reference cycle: Sample.owner → Sample.back → Sample",
    "optimizer_step": "optimizer_step: ballast",
    "retry_caught": "the OutOfMemoryError being handled",
    "backward": "model",
    "two_devices": "two_devices: outputs",
}
PATHS = sorted(FOLDER.glob("*.pickle.xz"))


def raw(path):
    return lzma.decompress(path.read_bytes())


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name.partition(".")[0])
def test_the_dump_is_a_snapshot_of_plain_values_with_one_more_key(path):
    content = raw(path)
    names = {opcode.name for opcode, _, _ in pickletools.genops(content)}
    assert not names & {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD"}
    dump = pickle.loads(content)
    assert set(dump) > {"segments", "device_traces", "allocator_settings", "oomscope"}
    key = dump["oomscope"]
    assert (key["schema_version"], key["reason"], key["captured_at"]) == (1, "oom", "observer")
    assert key["torch"].startswith("2.11")
    assert key["exception"]["message"].startswith("CUDA out of memory. Tried to allocate")
    assert key["walk"]["complete"]
    assert "failures" not in key
    assert path.stat().st_size < 150_000


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name.partition(".")[0])
def test_rows_are_of_live_blocks(path):
    dump = pickle.loads(raw(path))
    blocks = {
        (segment["device"], block["address"]): block
        for segment in dump["segments"]
        for block in segment["blocks"]
        if block["state"].startswith("active")
    }
    rows = dump["oomscope"]["tensors"]
    live = [row for row in rows if (row["device"], row["address"]) in blocks]
    assert sum(row["bytes"] for row in live) >= 0.999 * sum(row["bytes"] for row in rows)
    assert all(row["bytes"] <= blocks[row["device"], row["address"]]["size"] for row in live)


@pytest.mark.parametrize("name", HOLDERS)
def test_the_true_holder_is_first(name):
    path = FOLDER / f"{name}.pickle.xz"
    assert pickle.loads(raw(path))["oomscope"]["holders"][0]["holder"] == HOLDERS[name]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name.partition(".")[0])
def test_it_can_be_read(path):
    snapshot = oomscope.load(path)
    assert snapshot.context["version"] == "0.1.0"
