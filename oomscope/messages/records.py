"""What is read from a log: figures as precise as they were printed, messages, and the log they are from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from oomscope.frozen import frozen
from oomscope.messages.figures import Figure
from oomscope.messages.kinds import refused_by
from oomscope.model.note import Note

FIGURES = (
    "requested", "total", "free", "allocated", "reserved", "process_in_use", "others_in_use", "allowed",
    "private_pools",
)  # fmt: skip
"""The sizes that a message may print."""


@frozen
class Reading:
    """One message as its family of wordings reads it.

    Attributes:
        kind: one of `oomscope.messages.kinds.KINDS`.
        wording: the slug of the wording, such as ``torch.tried``; it chooses what can be said about it.
        start: where it begins in the text without blanks, in characters.
        end: where it ends there.
        figures: the printed sizes by their names in `FIGURES`; what is not printed is not there.
        device: the number of the device, None where it is not printed.
        rank: the global rank, where the message itself names it.
        values: whatever else the message says: names, counts, the advice that it gives.
    """

    kind: str
    wording: str
    start: int
    end: int
    figures: Mapping[str, Figure] = field(default_factory=dict)
    device: int | None = None
    rank: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def was_printed(self) -> bool:
        """Whether it has figures, which only a failure has, whoever quotes it."""
        return bool(self.figures) or self.device is not None


@frozen
class OomMessage:
    """One failure as a log tells it.

    Attributes:
        reading: what it says.
        line: the line of the log at which it begins, from 1.
        text: the message in one line, as printed but without prefixes, colours and escapes.
        rank: the global rank that printed it, None where none is named.
        during: what the traceback right above shows: ``weights``, ``backward``, ``optimizer``, ``pinned`` or None.
        script: the program, as the traceback above names it, or None.
        around: which of ``windows``, ``tensorflow``, ``onnxruntime``, ``darknet``, ``comfyui``, ``old_python`` (none
            that torch 2.1 runs on), ``not_container`` (Docker says that its limit was not reached) and
            ``jemalloc_pages`` (which fails whatever is free) the lines around it show.
        times: how often the same failure was printed.
        proves: what its figures prove.
        advice: what the advice in the message is worth here.
        cannot_tell: what they leave open.
    """

    reading: Reading
    line: int
    text: str
    rank: int | None = None
    during: str | None = None
    script: str | None = None
    around: frozenset[str] = frozenset()
    times: int = 1
    proves: tuple[Note, ...] = ()
    advice: tuple[Note, ...] = ()
    cannot_tell: tuple[Note, ...] = ()

    @property
    def kind(self) -> str:
        """One of `oomscope.messages.kinds.KINDS`."""
        return self.reading.kind

    @property
    def refused_by(self) -> str | None:
        """The layer that refused, of `oomscope.messages.kinds`; None where the message does not tell."""
        return refused_by(self.reading.kind, self.reading.wording)

    def figure(self, name: str) -> Figure | None:
        """The figure `name` of `FIGURES`, None where the message does not give it."""
        return self.reading.figures.get(name)


@frozen
class Log:
    """All that a log says about memory.

    Attributes:
        messages: in the order of the log.
        size: bytes that were searched.
        lines: lines that were searched.
        unread: places that look like messages and were not read because there are too many of them.
    """

    messages: tuple[OomMessage, ...]
    size: int
    lines: int
    unread: int = 0
