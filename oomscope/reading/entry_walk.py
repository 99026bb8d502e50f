"""One entry of a trace in a pickle, walked instruction by instruction: where it ends, and what it remembers."""

from __future__ import annotations

from typing import NamedTuple

# How many bytes follow an instruction of a plain value: gets, integers, None, booleans, floats.
_PLAIN = {ord("h"): 1, ord("j"): 4, ord("K"): 1, ord("M"): 2, ord("J"): 4, ord("N"): 0, 0x88: 0, 0x89: 0, ord("G"): 8}
_GETS = b"hj"
_LONG1, _LONGEST = 0x8A, 9
_TEXTS = {0x8C: 1, ord("X"): 4}
_TUPLE2 = 0x86
_MEMOIZE, _MARK, _DICT, _LIST, _APPEND, _APPENDS, _SETITEM, _SETITEMS = b"\x94(}]aesu"


class UnfitError(Exception):
    """An entry is not laid out as torch's are, or goes on beyond the data."""


class Pair(NamedTuple):
    """A key of an entry with its value.

    Attributes:
        key: the index of a remembered text; −1 where it is written out.
        begin, end: the instructions of the value.
    """

    key: int
    begin: int
    end: int


class EntryWalk:
    """Walks over the entry at `at`.

    Attributes:
        end: the first byte after it.
        remembered: how many objects it adds to the memo.
        texts: those of them that are texts, by their place among all that it adds.
        pairs: its keys and values.
        boundaries: where its instructions begin.

    Raises:
        UnfitError: it cannot be followed.
    """

    def __init__(self, data: bytes, at: int) -> None:
        self.end, self.remembered = at, 0
        self.boundaries: list[int] = []
        self.texts: dict[int, str] = {}
        self.pairs: list[Pair] = []
        self._data = data
        self._open_dict()
        while self._code() != _SETITEMS:
            key = self._key()
            self._code()
            begin = self.end
            self._value()
            self.pairs.append(Pair(key, begin, self.end))
        self.end += 1

    def _code(self) -> int:
        """The next instruction."""
        if self.end >= len(self._data):
            raise UnfitError
        self.boundaries.append(self.end)
        return self._data[self.end]

    def _take(self, code: int) -> None:
        if self._code() != code:
            raise UnfitError
        self.end += 1
        if code == _MEMOIZE:
            self.remembered += 1

    def _open_dict(self) -> None:
        for code in (_DICT, _MEMOIZE, _MARK):
            self._take(code)

    def _key(self) -> int:
        code = self._code()
        if code not in _GETS:
            self._text()
            return -1
        size = _PLAIN[code]
        self.end += 1 + size
        return int.from_bytes(self._data[self.end - size : self.end], "little")

    def _text(self) -> None:
        code, begin = self._code(), self.end + 1
        size = _TEXTS.get(code)
        if size is None:
            raise UnfitError
        length = int.from_bytes(self._data[begin : begin + size], "little")
        self.end = begin + size + length
        text = self._data[begin + size : self.end]
        self._take(_MEMOIZE)
        self.texts[self.remembered - 1] = text.decode("utf-8", "surrogatepass")

    def _value(self) -> None:
        if self._code() == _LIST:
            self._list()
        else:
            self._scalar()

    def _scalar(self) -> None:
        code = self._code()
        if code in _PLAIN:
            self.end += 1 + _PLAIN[code]
            if code == ord("K") and self._code() == ord("K"):
                # A pair of small integers is the id of a pool.
                self.end += 2
                self._take(_TUPLE2)
                self._take(_MEMOIZE)
        elif code == _LONG1:
            if self.end + 1 >= len(self._data) or self._data[self.end + 1] > _LONGEST:
                raise UnfitError
            self.end += 2 + self._data[self.end + 1]
        else:
            self._text()

    def _list(self) -> None:
        self._take(_LIST)
        self._take(_MEMOIZE)
        code = self._code()
        if code == _MARK:
            self.end += 1
            while self._code() != _APPENDS:
                self._item()
            self.end += 1
        elif code in (_DICT, *_GETS) and not self._is_key(code):
            self._item()
            self._take(_APPEND)

    def _is_key(self, code: int) -> bool:
        """Whether what follows an empty list is the next key, and not its only item: then no APPEND follows."""
        if code == _DICT:
            return False
        after = self.end + 1 + _PLAIN[code]
        return self._data[after : after + 1] != bytes([_APPEND])

    def _item(self) -> None:
        """A frame: remembered before, or a dict that is written out."""
        if self._code() in _GETS:
            self._key()
            return
        self._open_dict()
        while self._code() != _SETITEMS:
            self._key()
            self._scalar()
        self.end += 1


def begins_at(data: bytes, at: int, place: int) -> bool:
    """Whether an instruction begins at `place`; from `at` on there are only those of a list of remembered frames."""
    while at < place:
        at += 1 + _PLAIN.get(data[at], 0)
    return at == place
