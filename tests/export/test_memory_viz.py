"""The pickle and the JSON of a snapshot, which are written in pieces: the same as if they were made as a whole."""

from __future__ import annotations

import io
import json
import pickle
import pickletools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.export import memory_viz
from oomscope.export.pickled import PickleWriter
from oomscope.reading import load
from tests.export.exported import ALL, IDS, hostile_snapshot
from tests.reading.ways import streamed
from tests.shared import captures, needs_shared, recorded, shared_snapshot

VIEWERS_INSTRUCTIONS = {
    "APPENDS", "BINGET", "BININT", "BININT1", "BININT2", "EMPTY_DICT", "EMPTY_LIST", "FRAME", "LONG1", "LONG_BINGET",
    "MARK", "MEMOIZE", "PROTO", "SETITEMS", "SHORT_BINUNICODE", "STOP", "TUPLE2", "APPEND", "NEWFALSE", "BINPUT",
    "BINUNICODE", "EMPTY_TUPLE", "NEWTRUE", "NONE", "BINFLOAT", "TUPLE", "TUPLE1", "TUPLE3", "LONG_BINPUT", "LIST",
    "DICT", "SETITEM",
}  # fmt: skip
"""Those that torch's viewer knows."""


def check(snapshot: Any) -> None:
    plain = memory_viz.as_snapshot(snapshot)
    content = memory_viz.to_pickle(snapshot)
    assert pickle.loads(content) == plain
    assert {one.name for one, _, _ in pickletools.genops(content)} <= VIEWERS_INSTRUCTIONS
    assert json.loads(memory_viz.to_json(snapshot)) == json.loads(json.dumps(plain))


@pytest.mark.parametrize("path", [path for _, path in ALL], ids=IDS)
def test_both_hold_the_plain_containers(path: Path):
    check(load(path))


@needs_shared
@pytest.mark.parametrize("name", [*captures(), *recorded()])
def test_they_do_on_real_runs(name: str):
    check(shared_snapshot(name))


def test_they_do_with_the_worst_of_names():
    check(hostile_snapshot())


def test_a_stack_stands_in_it_once():
    snapshot = load(ALL[0][1])
    loaded = pickle.loads(memory_viz.to_pickle(snapshot))
    stacks = {id(entry["frames"]) for trace in loaded["device_traces"] for entry in trace}
    assert len(stacks) <= len(snapshot.stacks) + 1


def test_the_trace_can_be_taken_as_it_comes():
    for _, path in ALL:
        assert streamed(memory_viz.to_pickle(load(path))).entries == load(path).entries, path


def test_it_is_written_in_pieces():
    snapshot = load(ALL[0][1])
    assert len(list(memory_viz.pickled(snapshot))) > snapshot.entries // 1000
    assert len(list(memory_viz.as_json(snapshot))) > snapshot.entries // 1000


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=())),
    st.binary(),
)
PLAIN = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner), st.tuples(inner), st.tuples(inner, inner), st.tuples(inner, inner, inner, inner),
        st.dictionaries(st.text(), inner),
    ),
)  # fmt: skip


def written(plain: dict[str, Any], lists: Iterable[list[dict[str, Any]]] = ()) -> Any:
    return pickle.loads(b"".join(PickleWriter().document({**plain, "here": None}, "here", lists)))


@given(st.dictionaries(st.text(), PLAIN))
def test_any_plain_containers_come_back(plain: dict[str, Any]):
    plain.pop("here", None)
    assert written(plain) == {**plain, "here": []}


ENTRY = st.fixed_dictionaries(
    {"action": st.sampled_from(["alloc", "free"]), "stream": st.integers(0, 3), "addr": st.integers(0, 1 << 64)},
    optional={"pool_id": st.tuples(st.integers(), st.integers()), "text": st.text()},
)


@given(st.lists(st.lists(ENTRY, max_size=5), max_size=4))
def test_any_entries_come_back(lists: list[list[dict[str, Any]]]):
    stack = [{"name": "f"}]
    lists = [[{**entry, "frames": stack} for entry in entries] for entries in lists]
    assert written({"frames": stack}, lists) == {"frames": stack, "here": lists}


def test_long_containers_and_texts_come_back_and_one_object_stays_one():
    shared = [1, 2]
    plain = {"many": list(range(5000)), "dict": {str(n): n for n in range(3000)}, "text": "é" * 70_000}
    plain |= {"one": shared, "two": [shared, shared]}
    entries = [{"action": "alloc", "stream": 0, "frames": shared, "n": n} for n in range(2500)]
    read = written(plain, [entries, [], entries[:1]])
    assert read == {**plain, "here": [entries, [], entries[:1]]}
    assert read["one"] is read["two"][0] is read["two"][1] is read["here"][0][-1]["frames"]
    cycle: list[Any] = []
    cycle.append(cycle)
    read = written({"cycle": cycle})
    assert read["cycle"][0] is read["cycle"]


def test_an_empty_snapshot_is_one():
    from tests.builders import loaded

    check(loaded([], []))
    assert load(io.BytesIO(memory_viz.to_pickle(loaded([], [[]])))).entries == 0
