"""What a serving process leaves behind, from captures of one: H200, torch 2.11."""

from __future__ import annotations

from pathlib import Path

import oomscope
from oomscope.analysis.findings import DeviceFindings
from oomscope.rendering.answers.verdict import summary

CAPTURES = Path(__file__).parent / "serving"
MIB = 1 << 20


def test_an_engine_that_sleeps_in_a_pool_holds_free_memory_that_others_may_not_use():
    """Its weights went to the CPU and its cache was dropped: 3 GiB are free, in a MemPool that lives on."""
    findings = oomscope.analyze(oomscope.load(CAPTURES / "sleeping_pool.pickle.xz"), whatif=False)
    device = findings.main
    assert device is not None
    assert device.oom is not None
    assert device.oom.verdict.cause == "private_pools"
    assert device.fragmentation.walled == 3 << 30
    assert summary(findings)["cause"] == "private_pools"


def drivers(device: DeviceFindings) -> dict[str, int]:
    assert device.oom is not None
    return {driver.slug: driver.bytes for driver in device.oom.verdict.drivers}


def held_by(device: DeviceFindings, kind: str) -> dict[str, int]:
    return {holder.holder: holder.retained for holder in device.holders if holder.kind == kind}


def device_of(name: str) -> DeviceFindings:
    device = oomscope.analyze(oomscope.load(CAPTURES / f"{name}.pickle.xz"), whatif=False).main
    assert device is not None
    return device


def in_pools_of_graphs(device: DeviceFindings) -> int:
    return sum(pool.active for pool in device.pools if pool.kind == "graph")


PAGES = {"main: engine.paged": 12 * 128 * MIB, "main: engines['draft'].paged": 6 * 64 * MIB}
"""Two a page of 64 tokens, 512 pages, bfloat16: 12 layers of 1,024, and 6 of 512."""


def test_two_engines_hold_their_own_pages_and_graphs():
    """One class, one line, two sizes: `engine` is another name of the larger one."""
    device = device_of("two_engines")
    held = held_by(device, "list")
    assert {name: held[name] for name in PAGES} == PAGES
    found = drivers(device)
    assert found["kv_cache"] == sum(PAGES.values())
    assert abs(found["cuda_graphs"] - in_pools_of_graphs(device)) <= 8 * 512 * 4, "rounding of a few small blocks"
    models = held_by(device, "parameter")
    assert found["parameters"] == models["engine.model"] + models["engines['draft'].model"]
    assert "duplicate_model" not in found


def test_the_pool_of_a_sleeping_engine_is_named_and_to_be_let_go():
    """The larger engine sleeps: its pages are dropped and its pool lives; the other one's pool is full."""
    device = device_of("one_asleep")
    assert device.oom is not None
    verdict = device.oom.verdict
    pools = {pool.name: (pool.kind, pool.active, pool.inactive) for pool in device.pools if pool.kind == "mempool"}
    assert pools == {
        "Engine.mem_pool": ("mempool", 0, PAGES["main: engine.paged"]),
        "main: engine.mem_pool": ("mempool", PAGES["main: engines['draft'].paged"], 0),
    }
    assert verdict.cause == "private_pools"
    first, *others = [advice.slug for advice in verdict.advice]
    assert first == "let_pool_go"
    assert verdict.advice[0].saves_bytes == PAGES["main: engine.paged"]
    assert "share_graph_pool" not in others, "graphs hold next to nothing of it"
    assert drivers(device)["kv_cache"] == PAGES["main: engines['draft'].paged"]


def test_static_caches_of_two_engines_are_told_apart():
    """StaticCache of transformers: 16 layers of 8 heads and 8 of 4, 64 wide, for 16 × 4,096 tokens in bfloat16."""
    device = device_of("two_static_caches")
    chat, draft = 16 * 2 * 64 * MIB, 8 * 2 * 32 * MIB
    held = held_by(device, "list")
    assert (held["main: chat.cache.layers"], held["main: draft.cache.layers"]) == (chat, draft)
    found = drivers(device)
    assert found["kv_cache"] == chat + draft
    models = held_by(device, "parameter")
    rotary = 2 * 512  # bytes: a block of frequencies each, which is a buffer
    assert found["parameters"] == models["chat.model"] + models["draft.model"] + rotary
    assert "duplicate_model" not in found, "two models of one class and of different sizes"
    graphs = {pool.name: pool.kind for pool in device.pools}
    assert graphs == {"main: chat.graph": "graph", "main: draft.graph": "graph"}
