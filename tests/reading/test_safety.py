"""Files made to harm: nothing of what they ask for is done, and the error says what it was."""

from __future__ import annotations

import contextlib
import copyreg
import gc
import io
import os
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.errors import OomscopeError, SnapshotError, UnsafePickleError
from oomscope.reading import load
from oomscope.reading.unpickling import SafeUnpickler
from tests.builders import block, entry, pickled, segment, snapshot
from tests.said import said

HIDDEN_IN = {
    "at the top": lambda payload: payload,
    "in a segment": lambda payload: snapshot([{**segment(0, [block(512)]), "extra": payload}]),
    "in a trace": lambda payload: snapshot([], [[entry("alloc", 0, 512, extra=payload)] * 2]),
    "after the trace": lambda payload: snapshot([], [[entry("alloc", 0, 512), entry("alloc", 0, 512)]], extra=payload),
}


class Calls:
    """Pickles as a call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


class WithState:
    """Pickles as an object with a state: NEWOBJ and BUILD."""

    def __init__(self) -> None:
        self.a = 1


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("hide", HIDDEN_IN.values(), ids=HIDDEN_IN)
def test_a_call_is_refused_and_named_and_not_made(protocol: int, hide: Any, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    with pytest.raises(UnsafePickleError, match=rf"{os.system.__module__}\.system.*nothing was run"):
        load(pickled(hide(Calls(os.system, f"echo ran > {witness}")), protocol))
    assert not witness.exists()


@pytest.mark.parametrize("protocol", range(6))
def test_builtins_and_objects_are_refused(protocol: int) -> None:
    for payload in (Calls(eval, "1"), Calls(getattr, "a", "upper"), WithState(), os.system, Exception):
        with pytest.raises(UnsafePickleError, match="nothing was run"):
            load(pickled(snapshot([], extra=payload), protocol))


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        (b"cos\nsystem\n(S'echo'\ntR.", "os.system"),
        (b"(S'echo'\nios\nsystem\n.", "os.system"),
        (b"(cos\nsystem\nS'echo'\no.", "os.system"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04echo\x85R.", "os.system"),
        (b"\x80\x02}(U\x01aU\x01b)Ru.", "REDUCE"),
        (b"\x80\x02}}b.", "BUILD"),
        (b"\x80\x02(U\x01a}o.", "OBJ"),
        (b"\x80\x02U\x01a)\x81.", "NEWOBJ"),
        (b"\x80\x04U\x01a)}\x92.", "NEWOBJ_EX"),
        (b"\x80\x02\x82\xf0.", "EXT1"),
        (b"\x80\x02\x83\xf0\xf0.", "EXT2"),
        (b"\x80\x05\x97.", "NEXT_BUFFER"),
        (b"\x80\x05\x96\x01\x00\x00\x00\x00\x00\x00\x00a\x98.", None),
        (b"Pfile://etc/passwd\n.", None),
        (b"\x80\x02U\x04fileQ.", "object from outside"),
    ],
)
def test_every_instruction_that_is_more_than_data_is_refused(payload: bytes, named: str | None) -> None:
    if named is None:
        with pytest.raises(SnapshotError):
            load(io.BytesIO(payload))
    else:
        with pytest.raises(UnsafePickleError, match=named):
            load(io.BytesIO(payload))


def test_registered_extensions_are_refused_even_when_cached() -> None:
    copyreg.add_extension("os", "system", 240)
    try:
        data = b"\x80\x02\x82\xf0\x8c\x04echo\x85R."
        pickle.loads(b"\x80\x02\x82\xf0.")  # fills the cache
        with pytest.raises(UnsafePickleError, match=r"os\.system"):
            load(io.BytesIO(data))
    finally:
        copyreg.remove_extension("os", "system", 240)


def test_a_checkpoint_is_refused_as_one() -> None:
    from collections import OrderedDict

    with pytest.raises(UnsafePickleError, match=r"collections\.OrderedDict.*probably a checkpoint"):
        load(pickled(OrderedDict(weight=1)))


def test_names_in_messages_cannot_speak_to_the_terminal() -> None:
    name = "x\x1b[2J\u202e" * 100_000
    for data in (
        f"c{name}\nsystem\n.".encode(),
        pickle.dumps({name: 1}),
        pickle.dumps(snapshot([], extra=1) | {"segments": name}),
        pickle.dumps(snapshot([], [[entry(name, 0, 512, **{"k" + name: name})]]) | {name: name}),
        name.encode(),
    ):
        try:
            text = said(load(io.BytesIO(data)).notes)
        except OomscopeError as error:
            text = str(error)
        assert text.isprintable()
        assert len(text) < 1000


def remembered(index: int, protocol: int, before: int = 0) -> io.BytesIO:
    """A snapshot that remembers an object under `index`, after `before` others that it remembers too."""
    texts = [f"name {number}" for number in range(before)]
    start = pickle.dumps(texts, protocol)[:-1] + (b"0" if before else b"")
    put = b"r" + index.to_bytes(4, "little") if protocol else b"p%d\n" % index
    document = pickle.dumps(snapshot([], extra=0), protocol).removeprefix(b"\x80\x02")
    return io.BytesIO(start + b"N" + put + b"0" + document)


@pytest.mark.parametrize("protocol", [0, 2])
@pytest.mark.parametrize("index", [1 << 17, 9_999_999, (1 << 24) - 1])
def test_a_small_file_gets_no_room_for_millions_of_objects(index: int, protocol: int) -> None:
    for before in (0, 5_000):
        tracemalloc.start()
        try:
            with pytest.raises(SnapshotError):
                load(remembered(index, protocol, before))
            assert tracemalloc.get_traced_memory()[1] < 4 << 20
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("protocol", [0, 2])
def test_as_many_objects_are_remembered_as_the_file_has_room_for(protocol: int) -> None:
    assert load(remembered(1, protocol, 150_000)).devices == ()
    assert load(remembered(150_001, protocol, 150_000)).devices == ()
    with pytest.raises(SnapshotError):
        load(remembered(9_000_000, protocol, 150_000))


WHOLE = pickle.dumps(snapshot([], [[entry("alloc", row * 512, 512) for row in range(2000)]]), 4)


@pytest.mark.parametrize(
    "data",
    [
        WHOLE,
        WHOLE[:-500],
        WHOLE[:-500] + b"_" + WHOLE[-499:],
        WHOLE[:-1] + b"R.",
        WHOLE[:-1] + b"cos\nsystem\n.",
        b"\x80\x02_",
        b"cos\nsystem\n.",
    ],
    ids=["whole", "cut", "damaged", "refused", "looked up", "nothing", "looked up at once"],
)
def test_nothing_of_a_file_is_kept_once_it_is_read(data: bytes) -> None:
    """A cycle through the unpickler's memo is not seen by Python's collector."""
    before = {id(found) for found in unpicklers()}
    with contextlib.suppress(SnapshotError):
        load(io.BytesIO(data))
    assert [found for found in unpicklers() if id(found) not in before] == []


def unpicklers() -> list[SafeUnpickler]:
    gc.collect()
    return [found for found in gc.get_objects() if isinstance(found, SafeUnpickler)]


@pytest.mark.parametrize("depth", [10_000, 300_000])
def test_deep_nesting_is_an_error_like_any_other(depth: int) -> None:
    deep = b"\x80\x04" + b"]" * depth + b"a" * (depth - 1) + b"."
    listed = b"\x80\x02}(X\x08\x00\x00\x00segments]X\x0d\x00\x00\x00device_traces" + deep[2:-1] + b"u."
    for data in (deep, listed, b"[" * depth, b'{"segments": ' + b"[" * depth):
        with pytest.raises(SnapshotError):
            load(io.BytesIO(data))


@pytest.mark.parametrize("was_enabled", [True, False])
def test_the_collector_is_left_as_it_was_found(was_enabled: bool) -> None:
    try:
        (gc.enable if was_enabled else gc.disable)()
        load(pickled(snapshot()))
        assert gc.isenabled() == was_enabled
        with pytest.raises(SnapshotError):
            load(io.BytesIO(b"nothing"))
        assert gc.isenabled() == was_enabled
    finally:
        gc.enable()


DOCUMENT = snapshot(
    [segment(0, [block(512), block(512, "inactive")])],
    [[entry("alloc", 0, 512, frames=[]), entry("oom", 0, 1 << 30)], []],
    oomscope={"schema_version": 1},
)
ODD_VALUES = [None, True, -1, 1 << 70, 1.5, float("nan"), "text", b"bytes", [], [[]], {}, {"a": 1}, (1, 2, 3), {1}]


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        return found
    return found + [deeper for key, item in items for deeper in paths(item, (*path, key))]


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    if isinstance(value, dict):
        return {key: replaced(item, path[1:], odd) if key == path[0] else item for key, item in value.items()}
    return type(value)(replaced(item, path[1:], odd) if row == path[0] else item for row, item in enumerate(value))


@pytest.mark.parametrize("path", paths(DOCUMENT), ids=lambda path: ".".join(map(str, path)))
def test_any_value_of_any_type_anywhere_is_read_or_refused_in_words(path: tuple[Any, ...]) -> None:
    for odd in ODD_VALUES:
        # Anything but a SnapshotError fails the test.
        with contextlib.suppress(SnapshotError):
            load(pickled(replaced(DOCUMENT, path, odd)))


BEGINNINGS = [b"", b"\x80\x04", b"\x80\x02", b"}", b"(", b"{", b"<", b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd"]


@given(st.binary(max_size=200), st.sampled_from(BEGINNINGS))
def test_noise_is_an_error_in_words(noise: bytes, beginning: bytes) -> None:
    with pytest.raises(SnapshotError):
        load(io.BytesIO(beginning + noise))


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_one_wrong_byte_is_read_or_refused_in_words(place: int, value: int) -> None:
    data = bytearray(pickle.dumps(DOCUMENT, 4))
    data[place % len(data)] = value
    with contextlib.suppress(SnapshotError):
        load(io.BytesIO(bytes(data)))
