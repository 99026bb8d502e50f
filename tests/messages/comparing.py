"""What is read from a message against what it says, as somebody wrote it down by hand."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oomscope.messages import FIGURES, Log, OomMessage, read_log

NUMBERS = (*FIGURES, "device", "rank")


def read(text: str | bytes) -> Log:
    """The messages in `text`."""
    return read_log(io.BytesIO(text.encode() if isinstance(text, str) else text))


def number(message: OomMessage, name: str) -> int | None:
    """One of `NUMBERS` as it was read."""
    if name == "device":
        return message.reading.device
    if name == "rank":
        return message.rank
    figure = message.figure(name)
    return None if figure is None else figure.value


@dataclass
class Score:
    """How many of the kinds and of the printed numbers were read right, and what was not."""

    kinds: int = 0
    kinds_right: int = 0
    numbers: int = 0
    numbers_right: int = 0
    invented: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, name: str, text: bytes, truth: Mapping[str, Any]) -> None:
        """Count what was read from `text`; its first message is compared, or all where the truth lists them.

        Where the truth has no kind, nothing is to be said.
        """
        messages = read(text).messages
        self.kinds += 1
        kind = messages[0].kind if messages else None
        if kind == truth["kind"]:
            self.kinds_right += 1
        else:
            self.wrong.append(f"{name}: {kind} is {truth['kind']}")
        expected: Sequence[Mapping[str, Any]] = truth.get("messages") or ([truth] if truth["kind"] else [])
        if len(messages) != len(expected):
            self.wrong.append(f"{name}: {len(messages)} messages, not {len(expected)}")
        for index, one in enumerate(expected):
            self._compare(name, messages[index] if index < len(messages) else None, one)

    def _compare(self, name: str, message: OomMessage | None, truth: Mapping[str, Any]) -> None:
        for what in NUMBERS:
            want, got = truth.get(what), None if message is None else number(message, what)
            self.numbers += want is not None
            if want is not None and got == want:
                self.numbers_right += 1
            elif want != got:
                self.invented += want is None
                self.wrong.append(f"{name}: {what} {got} is {want}")
