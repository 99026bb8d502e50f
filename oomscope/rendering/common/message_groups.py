"""Messages of a log that say the same, shown once: the first of them, how many there are, and of which ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oomscope.messages.records import OomMessage
from oomscope.units import format_count, plural

_MOST_RANKS = 8


@dataclass(frozen=True, slots=True)
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
        """``line 12, rank 3``; with others: how many, and of which ranks."""
        first = self.first
        found = [f"line {format_count(first.line)}"]
        if first.rank is not None:
            found.append(f"rank {first.rank}" if not self.others else f"first rank {first.rank}")
        if first.times > 1:
            found.append(f"printed {first.times} times")
        if self.others:
            found.append(
                f"{plural(len(self.others) + 1, 'such message')}, last in line {format_count(self.others[-1].line)}"
            )
            if ranks := self._ranks():
                found.append(ranks)
        return ", ".join(found)

    def _ranks(self) -> str:
        ranks = sorted({one.rank for one in (self.first, *self.others) if one.rank is not None})
        if len(ranks) < 2:
            return ""
        shown = ", ".join(map(str, ranks[:_MOST_RANKS]))
        return f"ranks {shown}" + (f" and {len(ranks) - _MOST_RANKS} more" if len(ranks) > _MOST_RANKS else "")


def grouped(messages: Sequence[OomMessage]) -> list[MessageGroup]:
    """The groups in the order of their first messages."""
    found: dict[tuple[object, ...], list[OomMessage]] = {}
    for message in messages:
        codes = tuple(note.code for note in message.proves)
        found.setdefault((message.kind, message.reading.wording, codes), []).append(message)
    return [MessageGroup(members[0], tuple(members[1:])) for members in found.values()]
