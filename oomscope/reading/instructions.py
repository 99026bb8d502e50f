"""The instructions of a pickle, checked before the unpickler sees them.

A pickle is a program for a small machine, and Python's unpickler does what it is told: it reserves room for two
thousand million objects because four bytes say so, and it hashes a tuple of a million tuples until the stack of the
process ends. So the instructions are walked first. Nothing is built while they are, and almost all of them are passed
over by one regular expression; only what is rare, or could do harm, is looked at one by one.

The walk also knows where each instruction ends. So a file that was cut off is read up to its last whole one.
"""

from __future__ import annotations

import re
from functools import cache

from oomscope.errors import UnsafePickleError

FRAME, STOP = 0x95, 0x2E

# Texts of these lengths recur in every entry ("N/A", ""); all others end a run.
_TEXT = rb"\x8c(?:\x00|\x03...)"
# Integers of 64 bits; the ninth byte only holds a sign.
_LONG = rb"\x8a(?:\x06.{6}|\x07.{7}|\x08.{8}|\x05.{5}|\x04....|\x09.{8}\x00|\x03...|\x02..|\x01.|\x00)"
_VALUE = rb"(?:h.|j....|" + _LONG + rb"|M..|J....|K.(?:K.\x86\x94)?|" + _TEXT + rb"\x94)"
# An entry of a trace as most releases write it, its first seven pairs: to try them in a row is faster than one by one.
_ENTRY = rb"\}\x94\(" + (rb"(?:j....|h.)" + _VALUE) * 7
_FEWEST_BITS, _MOST_BITS = 16, 24


@cache
def _usual(bits: int) -> re.Pattern[bytes]:
    """Runs of instructions that can do no harm, where no object is remembered under a number of more than `bits`."""
    highest = re.escape(bytes([(1 << bits - 16) - 1]))
    digits = len(str(1 << bits)) - 1
    return re.compile(
        rb"(?:"
        + rb"|".join(
            (
                _ENTRY,
                rb"j....|K.K.\x86|[hKq].|[\x94()}\]ueasN\x88\x89ld012\x8f\x90\x91]|M..|J....",
                _LONG,
                rb"r..[\x00-" + highest + rb"]\x00",
                rb"G.{8}",
                _TEXT,
                # Protocol 0 writes lines.
                rb"g[0-9]{1,10}\n|p[0-9]{1,%d}\n|[IL]-?[0-9]{1,19}L?\n|F[^\n]{0,40}\n|[SV][^\n]{0,400}\n" % digits,
            )
        )
        + rb"){0,20000}",
        re.DOTALL,
    )


# How many bytes follow an instruction; for texts and the like, how many bytes say how many follow; and how many lines.
_FIXED = dict.fromkeys(b"()}]ueasNld012to.RbQ\x81\x92\x93\x85\x86\x87\x88\x89\x8f\x90\x91\x94\x97\x98", 0)
_FIXED |= {0x80: 1, ord("K"): 1, ord("h"): 1, ord("q"): 1, 0x82: 1, ord("M"): 2, 0x83: 2}
_FIXED |= {ord("J"): 4, ord("j"): 4, ord("r"): 4, 0x84: 4, ord("G"): 8, FRAME: 8}
_COUNTED = {0x8C: 1, ord("U"): 1, ord("C"): 1, 0x8A: 1, ord("X"): 4, ord("T"): 4, ord("B"): 4, 0x8B: 4}
_COUNTED |= {0x8D: 8, 0x8E: 8, 0x96: 8}
_LINES = dict.fromkeys(b"IFLSVgpP", 1) | dict.fromkeys(b"ci", 2)

_TUPLES = frozenset(b"t\x85\x86\x87")
_INTEGERS = frozenset(b"IL\x8a\x8b")
_REFUSED = {
    ord("R"): "REDUCE",
    ord("b"): "BUILD",
    ord("o"): "OBJ",
    0x81: "NEWOBJ",
    0x92: "NEWOBJ_EX",
    ord("P"): "PERSID",
    ord("Q"): "BINPERSID",
    0x97: "NEXT_BUFFER",
    0x98: "READONLY_BUFFER",
}
_OUTSIDE = frozenset({"PERSID", "BINPERSID", "NEXT_BUFFER", "READONLY_BUFFER"})
# Left to the unpickler, which asks `find_class` for what they name: so the name can be told.
_LOOKUPS = {ord("c"): "GLOBAL", ord("i"): "INST", 0x93: "STACK_GLOBAL", 0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4"}
_LONGEST_INTEGER = 4300
"""Bytes, or digits: as many as Python reads by default."""
_MOST_LONG_INTEGERS = 1000
"""Keys of a dict could be chosen so that all have one hash, which only works with integers beyond 61 bits."""
_MOST_TUPLES = 1_000_000
"""Each costs a call; a snapshot has pairs only, as names of memory pools."""
CHECK = b"Q"
"""Follows a tuple that is not a plain pair: the unpickler then asks `persistent_load` what to make of it."""


class RefusedError(UnsafePickleError):
    """An instruction that builds objects, or takes them from elsewhere."""


class Instructions:
    """Walks a pickle piece by piece.

    Attributes:
        walked: bytes of whole instructions so far.
        has_ended: whether STOP was met.
        wanted: how many more bytes the next instruction needs at least, where it is not whole.
        problem: what is wrong with the next instruction; the walk goes no further.
        lookup: the last instruction that looks up a name, if there was one.
    """

    def __init__(self) -> None:
        self.walked = 0
        self.has_ended = False
        self.wanted = 0
        self.problem: Exception | None = None
        self.lookup: RefusedError | None = None
        self._bits = _FEWEST_BITS
        self._long_integers = 0
        self._tuples = 0

    def take(self, data: bytes) -> tuple[bytes, int]:
        """Walk over `data`.

        Returns:
            The whole and harmless instructions, without FRAME and with `CHECK` where it is needed; and how many bytes
            of `data` that were.
        """
        parts, at, kept, size = [], 0, 0, len(data)
        while not (self.has_ended or self.problem):
            at = _usual(self._bits).match(data, at).end()  # type: ignore[union-attr]  # it also matches nothing
            if at >= size:
                break
            code, end = data[at], self._end(data, at)
            if end > size or self._is_wrong(code, data, at, end):
                self.wanted = end - size
                break
            if code == FRAME:
                parts.append(data[kept:at])
                kept = end
            elif code in _TUPLES:
                parts += [data[kept:end], CHECK]
                kept = end
                self._tuples += 1
            self.has_ended = code == STOP
            at = end
        parts.append(data[kept:at])
        self.walked += at
        return b"".join(parts), at

    def _end(self, data: bytes, at: int) -> int:
        """Where the instruction at `at` ends, beyond `data` where it is not whole; `problem` where there is none."""
        code = data[at]
        if code in _FIXED:
            return at + 1 + _FIXED[code]
        if code in _COUNTED:
            begin = at + 1 + _COUNTED[code]
            # A length of four bytes in BINSTRING and LONG4 has a sign; below 0 it is as good as endless.
            return begin + int.from_bytes(data[at + 1 : begin], "little") if begin <= len(data) else begin
        end = at
        for _ in range(_LINES.get(code, 0)):
            end = data.find(b"\n", end + 1)
            if end < 0:
                return len(data) + 1
        if end == at:
            self.problem = ValueError(f"invalid instruction 0x{code:02x} at byte {self.walked + at:,}")
        return end + 1

    def _is_wrong(self, code: int, data: bytes, at: int, end: int) -> bool:
        place = self.walked + at
        if code in _REFUSED:
            self.problem = _refused(_REFUSED[code], place)
        elif code in _LOOKUPS:
            self.lookup = _refused(_LOOKUPS[code], place)
        elif code in _TUPLES and self._tuples >= _MOST_TUPLES:
            self.problem = ValueError(f"it holds more than {_MOST_TUPLES:,} tuples that are no pairs of small integers")
        elif code in b"rp":
            index = _index(data[at + 1 : end], is_text=code == ord("p"))
            if not 0 <= index <= place:
                self.problem = ValueError(f"it remembers {index:,} objects at byte {place:,}")
            # The unpickler makes room for twice the number. A file that remembers so many may do so without a look at
            # each, up to as many as there were bytes.
            self._bits = min(max(place.bit_length() - 1, _FEWEST_BITS), _MOST_BITS)
        elif code in _INTEGERS:
            self._long_integers += 1
            if end - at > _LONGEST_INTEGER or self._long_integers > _MOST_LONG_INTEGERS:
                self.problem = ValueError(f"it holds integers that no 64 bits hold, as at byte {place:,}")
        return self.problem is not None


def _refused(name: str, place: int) -> RefusedError:
    wish = "fetch an object from outside the file" if name in _OUTSIDE else "build an object"
    return RefusedError(refusal(f"{wish} (instruction {name} at byte {place:,})"))


def _index(text: bytes, *, is_text: bool) -> int:
    if not is_text:
        return int.from_bytes(text, "little")
    digits = text.strip()
    return int(digits) if digits.isdigit() and len(digits) < 20 else -1


def refusal(wish: str, guess: str = "") -> str:
    """The sentence for a file that asked for more than data."""
    return (
        f"the file asks Python to {wish} while it is read; this was refused and nothing was run, "
        f"for no memory snapshot needs it{guess}."
    )
