"""A log as its messages: places are found, unwrapped, read, put together and judged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter

from oomscope.frozen import frozen
from oomscope.messages import aftermath
from oomscope.messages.families import LAST_RESORT, WORDINGS, host
from oomscope.messages.in_source import is_in_source
from oomscope.messages.merge import NEAR, absorbed, of_xla, repeats
from oomscope.messages.proofs import judged
from oomscope.messages.records import Log, OomMessage, Reading
from oomscope.messages.scan import Passage, Scan, Stream
from oomscope.messages.supposed import is_supposed
from oomscope.messages.traceback_above import around, doing, script_above
from oomscope.messages.unwrap import Strand, shown, strands

LONGEST_TEXT = 1_000
"""Characters of a message that are shown."""
MOST_MESSAGES = 1_000
_AFTER = 400
"""Characters after a message in which it gives its advice."""
_NEEDS = tuple(dict.fromkeys(need for wording in WORDINGS for need in wording.any_of))
_FEW_WORDS, _SHORT_LINE = 60, 300
_TWO = 2
"""Messages of one process and kind that are compared with its next one."""
_MANY, _WORDS = 4, 12
"""Figures, and letters of a program's own words before them, that no two processes print by chance."""
_NAMES = re.compile(r"\[[^\[\]]*\]:?|[\w.]*(?:Error|Exception):")
_HOW = 40
"""Characters before a message, in its line, that tell one logger from another."""
_DIGITS = re.compile(r"\d+")
_IN_A_ROW = 2
"""Lines within which the loggers of a program report one failure."""
_OUT_OF = re.compile(r"[a-z]{2,}(?:_[a-z]+)*_out_of_[a-z]+")
"""A code for a shortage, in lower case."""
_EXCEPTION = re.compile(r"(?:Error|Exception):[\"'(]*\Z")
_REPORT = re.compile(r"(?:errors?|failed|msg)[\"']?:[\"'(]*\Z")
"""With what a program hands an exception on in words of its own: ``Server error:``, ``Training failed:``."""
_ENDS_IN_RANK = re.compile(r"\srank=(\d{1,6})\s*\Z")
_RANK_ALONE = re.compile(r"\A\s*rank=(\d{1,6})\s*\Z")
_ELASTIC_RANK = re.compile(r"rank\s*:\s*(\d{1,6})\s*\(local_rank")


@frozen
class _Found:
    offset: int
    owner: str
    message: OomMessage
    ends_traceback: bool
    reports: bool = False
    before: str = ""


@dataclass(slots=True)
class _Collector:
    """Puts together what tells of the same failure, process by process."""

    messages: list[OomMessage] = field(default_factory=list)
    vague: list[OomMessage] = field(default_factory=list)
    left_out: int = 0
    _places: dict[tuple[str, str, bool], list[tuple[int, _Found]]] = field(default_factory=dict)
    _lately: dict[str, OomMessage] = field(default_factory=dict)
    _last: _Found | None = None

    def take(self, found: _Found) -> None:
        """Add `found`, or what it adds to an earlier message of its process."""
        lately = self._of_xla(found)
        message = of_xla(found.message, lately)
        found = replace(found, message=message)
        if aftermath.passes_on(lately, message) or aftermath.speaks_of(lately, message):
            return
        if self._last is not None and _handed_on(self._last, found):
            return
        if aftermath.ends_program(self.messages[-1] if self.messages else None, message):
            return
        vague = message.reading.wording in LAST_RESORT
        into = self.vague if vague else self.messages
        places = self._places.setdefault((found.owner, message.kind, vague), [])
        if places and (_absorb(into, places[-1], found) or _is_repeated(into, places, found)):
            return
        if into and into[-1] is lately and _only_announces(into[-1], message):
            into.pop()
        if len(into) >= MOST_MESSAGES:
            self.left_out += 1
            return
        into.append(message)
        if not vague:
            self._lately[found.owner], self._last = message, found
        places.append((len(into) - 1, found))
        del places[:-_TWO]

    def _of_xla(self, found: _Found) -> OomMessage | None:
        """The last message of the process of `found`, as JAX's where `found` shows that it was."""
        lately = self._lately.get(found.owner)
        if lately is None or self.messages[-1] is not lately:
            return lately
        told = of_xla(lately, found.message)
        if told is not lately:
            index, last = self._places[found.owner, lately.kind, False].pop()
            self.messages[index] = self._lately[found.owner] = told
            self._places.setdefault((found.owner, told.kind, False), []).append((index, replace(last, message=told)))
        return told


def _only_announces(last: OomMessage, new: OomMessage) -> bool:
    """Whether `last` tells nothing but that `new` may come, or has."""
    return _only_mentions(last, new) or aftermath.only_warned(last, new)


def _only_mentions(last: OomMessage, new: OomMessage) -> bool:
    """Whether `last` but names the code of the failure that `new` tells, as people do above the log that they quote."""
    if last.reading.figures or not new.reading.figures or new.line - last.line > NEAR or last.kind == new.kind:
        return False
    return not set(_OUT_OF.findall(last.text.lower())).isdisjoint(_OUT_OF.findall(new.text.lower()))


def _absorb(into: list[OomMessage], place: tuple[int, _Found], found: _Found) -> bool:
    """Whether the message at `place` tells of the same failure; it has then what `found` adds."""
    index, last = place
    joined = absorbed(into[index], found.message, raised_once=_raised_once(last, found))
    if joined is None:
        return False
    into[index] = joined
    return True


def _raised_once(last: _Found, new: _Found) -> bool:
    """Whether equal figures in both are an exception's that was printed twice.

    Both stand after its name, or one does and right beside it a program reports it word for word. Or several loggers of
    a program report it line by line, each in its own way; one that reports it twice has met it twice.
    """
    if last.ends_traceback and new.ends_traceback:
        return True
    if last.reports and new.reports and last.before == new.before:
        return False
    within = _IN_A_ROW if last.reports and new.reports else NEAR
    each_is_either = all(one.ends_traceback or one.reports for one in (last, new))
    near = new.message.line - last.message.line <= within
    return each_is_either and near and last.message.text == new.message.text


def _handed_on(last: _Found, new: _Found) -> bool:
    """Whether `new` is what another process of a server reports of `last`, word for word and with words before it.

    Ranks that fail alike have but the name of the exception before theirs.
    """
    if new.owner == last.owner or new.message.text != last.message.text or len(new.message.reading.figures) < _MANY:
        return False
    words, others = (_NAMES.sub("", one.before)[-_WORDS:] for one in (last, new))
    return words == others and len(words) == _WORDS and new.message.line - last.message.line <= NEAR


def _is_repeated(into: list[OomMessage], places: list[tuple[int, _Found]], found: _Found) -> bool:
    """Whether the last but one of the messages at `places` is printed again; it is counted then."""
    if len(places) < _TWO:
        return False
    (earlier, _), (between, _) = places[-_TWO:]
    if not repeats(into[earlier], into[between], found.message):
        return False
    into[earlier] = replace(into[earlier], times=into[earlier].times + 1)
    return True


def read_log(stream: Stream) -> Log:
    """The messages about memory in `stream`, a log in bytes, with what their figures prove.

    Nothing is kept of the log but the messages; see `oomscope.messages.scan` for what bounds them.
    """
    scan = Scan()
    collector = _Collector()
    taken: dict[str, int] = {}
    for passage in scan.passages(stream):
        for found, end in _read(passage):
            # Two passages may overlap; what a process wrote is taken once.
            if found.offset >= taken.get(found.owner, 0):
                collector.take(found)
                taken[found.owner] = end
        if len(collector.messages) >= MOST_MESSAGES:
            scan.only_count()
    # Words that no family knows say nothing where others tell the same in words that are known.
    messages = collector.messages or _clearest(collector.vague)
    return Log(tuple(judged(message) for message in messages), scan.size, scan.lines, scan.unread + collector.left_out)


def _clearest(vague: list[OomMessage]) -> list[OomMessage]:
    """Those of `vague` that name a place where memory ran out; all where none does."""
    return [message for message in vague if message.refused_by is not None] or vague


def _read(passage: Passage) -> list[tuple[_Found, int]]:
    """What a passage holds, in the order of the log, each with where it ends."""
    found: list[tuple[int, _Found, int]] = []
    for strand in strands(passage.raw, passage.offset, passage.number):
        found_here = readings(strand.packed)
        for reading, until in zip(found_here, _starts_after(found_here), strict=True):
            index = strand.index_at(reading.start)
            line = strand.lines[index]
            offset = line.offset + reading.start - strand.starts[index]
            last = strand.index_at(max(reading.end - 1, reading.start))
            end = strand.lines[last].offset + reading.end - strand.starts[last]
            one = _Found(
                offset,
                strand.owner,
                _message(strand, reading, until, passage),
                ends_traceback=_stands_after(_EXCEPTION, strand, reading),
                reports=_stands_after(_REPORT, strand, reading),
                before=_DIGITS.sub("", strand.packed[max(strand.starts[index], reading.start - _HOW) : reading.start]),
            )
            found.append((offset, one, end))
    found.sort(key=itemgetter(0))
    return [(one, end) for _, one, end in found]


def readings(text: str) -> list[Reading]:
    """All messages in `text`, which has no blanks, from its start to its end; none overlaps another."""
    lowered = text.lower()
    taken: list[Reading] = []
    # Most wordings need what stands nowhere, and many need the same.
    there = {need for need in _NEEDS if need in lowered}
    for wording in WORDINGS:
        if there.isdisjoint(wording.any_of):
            continue
        # They are last; what they read counts only where nothing else is said.
        if wording.slug in LAST_RESORT and any(one.wording not in LAST_RESORT for one in taken):
            break
        for reading in list(wording.read(text, lowered, taken)):
            if all(reading.end <= other.start or other.end <= reading.start for other in taken):
                taken.append(reading)
    told = (
        one for one in taken if not (_only_names(one, taken, text) or is_supposed(one, text) or is_in_source(one, text))
    )
    return sorted(told, key=lambda reading: reading.start)


def _only_names(reading: Reading, others: list[Reading], text: str) -> bool:
    """Whether it is but the name of an exception, whose message another reading has."""
    return reading.wording == host.EXCEPTION.slug and any(
        text.startswith(":", reading.end) and reading.end < other.start <= reading.end + 2 for other in others
    )


def _stands_after(pattern: re.Pattern[str], strand: Strand, reading: Reading) -> bool:
    return pattern.search(strand.packed, max(0, reading.start - 60), reading.start) is not None


def _starts_after(found: list[Reading]) -> list[int]:
    """Where what stands after each message ends at the latest: there the next one begins, with words of its own."""
    return [
        min(reading.end + _AFTER, found[index + 1].start if index + 1 < len(found) else reading.end + _AFTER)
        for index, reading in enumerate(found)
    ]


def _message(strand: Strand, reading: Reading, until: int, passage: Passage) -> OomMessage:
    index = strand.index_at(reading.start)
    line = strand.lines[index]
    reading = replace(reading, values={**reading.values, "after": strand.packed[reading.end : until]})
    if reading.wording == aftermath.SIGNAL and aftermath.shuts_down(strand.packed, reading.start):
        reading = replace(reading, values={**reading.values, "shuts_down": True})
    during = doing(strand, reading.start)
    if during == "pinned" and reading.kind == "cuda-driver":
        reading = replace(reading, kind="pinned-host", wording="pinned.refused")
    rank = reading.rank if reading.rank is not None else strand.rank_before(reading.start)
    if rank is None and reading.kind == "oom-killer":
        rank = next(_elastic_ranks(strand, index), None)
    if rank is None:
        rank = _rank_behind(strand, strand.index_at(max(reading.end - 1, reading.start)))
    return OomMessage(
        reading,
        line.number,
        _text(strand, reading),
        rank,
        during,
        script_above(passage.above + passage.raw[: max(0, line.offset - passage.offset)]),
        around(strand, reading.start),
    )


def _text(strand: Strand, reading: Reading) -> str:
    """The message as printed; a few words say nothing without the line they stand in."""
    text = strand.text_between(reading.start, reading.end, LONGEST_TEXT)
    if len(text) >= _FEW_WORDS:
        return text
    line = shown(strand.lines[strand.index_at(reading.start)].text)
    return line if text in line and len(line) <= _SHORT_LINE else text


def _rank_behind(strand: Strand, last: int) -> int | None:
    """The rank that a structured logger puts behind its text: ending the line, or as a line of its own."""
    for index, pattern in ((last, _ENDS_IN_RANK), (last + 1, _RANK_ALONE)):
        if index < len(strand.lines) and (match := pattern.search(strand.lines[index].text)):
            return int(match[1])
    return None


def _elastic_ranks(strand: Strand, index: int) -> Iterator[int]:
    """The rank in torchrun's summary, two lines above the exit code."""
    for line in reversed(strand.lines[max(0, index - 3) : index + 1]):
        if match := _ELASTIC_RANK.search(line.text):
            yield int(match[1])
