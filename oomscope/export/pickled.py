"""Plain containers as a pickle, written in pieces: what `pickle.dumps` would write, without having all of it at once.

The instructions are those that `pickle.dump` uses for dicts, lists, tuples, texts and numbers, in the same places, so
that every viewer reads them, and `reading/streaming.py` takes the trace as it comes. The memo is counted, not kept:
entries are numbered in it and forgotten.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

PROTOCOL = 4
"""The newest that the viewer on pytorch.org reads."""
_BATCH = 1000
"""Items that are handed over at once, as pickle does."""
_EMPTY_DICT, _EMPTY_LIST, _MEMOIZE, _MARK = b"}", b"]", b"\x94", b"("


class PickleWriter:
    """Turns containers into instructions. What is written twice is one object, by identity; texts are by value."""

    def __init__(self) -> None:
        self._count = 0
        self._texts: dict[str, bytes] = {}
        self._known: dict[int, tuple[Any, bytes]] = {}
        self._heads: dict[tuple[str, int, int], bytes] = {}

    def document(
        self, plain: dict[str, Any], streamed: str, lists: Iterable[Iterable[dict[str, Any]]]
    ) -> Iterator[bytes]:
        """The whole pickle: `plain`, where under the key `streamed` stand `lists` of dicts, made meanwhile."""
        yield bytes([0x80, PROTOCOL])
        yield _framed(_EMPTY_DICT + self._memoized() + _MARK)
        for key, value in plain.items():
            if key == streamed:
                yield _framed(self.instructions(key) + _EMPTY_LIST + self._memoized() + _MARK)
                for entries in lists:
                    yield from map(_framed, self._rows(entries))
                yield _framed(b"e")
            else:
                yield _framed(self.instructions(key) + self.instructions(value))
        yield _framed(b"u.")

    def _rows(self, entries: Iterable[dict[str, Any]]) -> Iterator[bytes]:
        rest, opened = iter(entries), _EMPTY_LIST + self._memoized()
        while batch := list(islice(rest, _BATCH)):
            yield b"".join([opened, _MARK, *map(self._row, batch), b"e"])
            opened = b""
        if opened:
            yield opened

    def _row(self, entry: dict[str, Any]) -> bytes:
        """One entry. What many share, its action, stream and stack, is looked up as a whole."""
        key = (entry["action"], entry["stream"], id(entry["frames"]))
        rows = [_EMPTY_DICT + self._memoized() + _MARK, self._heads.get(key) or self._head(key, entry)]
        for name, value in entry.items():
            if name not in ("action", "stream", "frames"):
                rows += (self._texts.get(name) or self.instructions(name), self.instructions(value))
        return b"".join([*rows, b"u"])

    def _head(self, key: tuple[str, int, int], entry: dict[str, Any]) -> bytes:
        pairs = [(name, entry[name]) for name in ("action", "stream", "frames")]
        first = b"".join(self.instructions(name) + self.instructions(value) for name, value in pairs)
        # The first time it defines what it names; from then on it only names it.
        self._heads[key] = b"".join(self.instructions(name) + self.instructions(value) for name, value in pairs)
        return first

    def instructions(self, value: Any) -> bytes:
        """What puts `value` on the stack."""
        kind = type(value)
        if kind is int:
            return _integer(value)
        if kind is str:
            return self._texts.get(value) or self._text(value)
        if kind in (list, dict, tuple):
            known = self._known.get(id(value))
            return known[1] if known else self._container(value)
        return _leaf(value)

    def _memoized(self) -> bytes:
        self._count += 1
        return _MEMOIZE

    def _named(self) -> bytes:
        """What fetches the object that is memoized next."""
        return b"h" + bytes([self._count]) if self._count < 256 else b"j" + self._count.to_bytes(4, "little")

    def _text(self, value: str) -> bytes:
        encoded = value.encode("utf-8", "surrogatepass")
        size = len(encoded)
        head = b"\x8c" + bytes([size]) if size < 256 else b"X" + size.to_bytes(4, "little")
        self._texts[value] = self._named()
        return head + encoded + self._memoized()

    def _container(self, value: Any) -> bytes:
        if type(value) is tuple:
            items = b"".join(map(self.instructions, value))
            made = items + bytes([0x84 + len(value)]) if 0 < len(value) <= 3 else _MARK + items + b"t"
            if not value:
                return b")"
            self._known[id(value)] = (value, self._named())
            return made + self._memoized()
        self._known[id(value)] = (value, self._named())
        opened = (_EMPTY_DICT if type(value) is dict else _EMPTY_LIST) + self._memoized()
        return opened + b"".join(self._filled(value))

    def _filled(self, value: dict[Any, Any] | list[Any]) -> Iterator[bytes]:
        pairs = isinstance(value, dict)
        items = iter(value.items()) if isinstance(value, dict) else ((item,) for item in value)
        while batch := list(islice(items, _BATCH)):
            yield (
                _MARK + b"".join(self.instructions(part) for item in batch for part in item) + (b"u" if pairs else b"e")
            )


def _framed(instructions: bytes) -> bytes:
    return b"\x95" + len(instructions).to_bytes(8, "little") + instructions


def _integer(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + value.to_bytes(1, "little")
    if 0 <= value < 1 << 16:
        return b"M" + value.to_bytes(2, "little")
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + value.to_bytes(4, "little", signed=True)
    size = value.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True) if size < 256 else _leaf(value)


def _leaf(value: Any) -> bytes:
    """A number, None or bytes, as pickle writes it; nothing of it is memoized."""
    sink = io.BytesIO()
    pickler = pickle.Pickler(sink, protocol=3)
    pickler.fast = True
    pickler.dump(value)
    return sink.getvalue()[2:-1]  # without PROTO and STOP
