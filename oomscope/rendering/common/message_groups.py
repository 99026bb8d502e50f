"""Messages of a log that say the same, shown once: the first of them, how many there are, and of which ranks."""

from __future__ import annotations

from collections.abc import Sequence

from oomscope.frozen import frozen
from oomscope.messages.records import OomMessage
from oomscope.units import format_count, format_size, plural

_MOST_RANKS = 8


@frozen
class MessageGroup:
    """Messages of one kind that prove the same.

    Attributes:
        first: the first in the log, which is shown.
        others: those after it.
    """

    first: OomMessage
    others: tuple[OomMessage, ...]

    @property
    def where(self) -> str:
        """``line 12, rank 3``; of several: ``6 such messages, lines 57 to 62, ranks in order: 5, 0, 3``.

        Where they ask for different sizes, the least and the largest are told: ``6 such messages of 2 to 8 MiB``.
        """
        first = self.first
        if self.others:
            lines = f"lines {format_count(first.line)} to {format_count(self.others[-1].line)}"
            found = [plural(len(self.others) + 1, "such message") + self._sizes(), *self._devices(), lines]
        else:
            found = [f"line {format_count(first.line)}"]
        if first.times > 1:
            found.append(f"printed {first.times} times")
        return ", ".join(found + self._ranks())

    def _sizes(self) -> str:
        figures = (one.figure("requested") for one in (self.first, *self.others))
        sizes = sorted({figure.value for figure in figures if figure is not None})
        return f" of {format_size(sizes[0])} to {format_size(sizes[-1])}" if len(sizes) > 1 else ""

    def _devices(self) -> list[str]:
        devices = list(dict.fromkeys(one.reading.device for one in (self.first, *self.others)))
        return [f"devices in order: {', '.join(map(_number, devices[:_MOST_RANKS]))}"] if len(devices) > 1 else []

    def _ranks(self) -> list[str]:
        ranks = list(dict.fromkeys(one.rank for one in (self.first, *self.others) if one.rank is not None))
        if len(ranks) < 2:
            return [f"rank {rank}" for rank in ranks]
        more = f" and {len(ranks) - _MOST_RANKS} more" if len(ranks) > _MOST_RANKS else ""
        return [f"ranks in order: {', '.join(map(str, ranks[:_MOST_RANKS]))}{more}"]


def _number(device: int | None) -> str:
    return "not named" if device is None else str(device)


def grouped(messages: Sequence[OomMessage]) -> list[MessageGroup]:
    """The groups in the order of their first messages."""
    found: dict[tuple[object, ...], list[OomMessage]] = {}
    for message in messages:
        codes = tuple(note.code for note in message.proves)
        found.setdefault((message.kind, message.reading.wording, codes), []).append(message)
    return [MessageGroup(members[0], tuple(members[1:])) for members in found.values()]
