"""The ``oomscope`` key of a dump, checked and turned into records.

It is a stranger's data: whatever is not what it has to be is left out and counted, and nothing is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from oomscope.model.recorded import RecordedContext, RecordedHistory, RecordedMark, RecordedStep
from oomscope.model.recorded_holders import RecordedHolder, RecordedTensor, RecordedWalk
from oomscope.model.recorded_machine import RecordedDevice, RecordedPool, RecordedProcess, RecordedRequest, RecordedSelf
from oomscope.model.recorded_stacks import (
    RecordedAutograd,
    RecordedGathering,
    RecordedSource,
    RecordedStacks,
    RecordedThread,
)
from oomscope.model.recorded_unread import RecordedUnread
from oomscope.model.stacks import Frame

_R = TypeVar("_R")
_ABOVE = 1 << 63
"""What no column of int64 holds is no size, no time and no address."""
_LEAST_LINE = 1
_TEXTS = (
    "version", "created", "reason", "captured_at", "torch", "cuda", "driver", "python", "platform", "device_type",
)  # fmt: skip
_NO_LIMIT = -1
"""What torch puts where it has no limit, as `max_split_size` among the statistics of every device."""


def parse_context(context: object) -> RecordedContext:
    """The record of the key's value; an empty one for anything but a mapping."""
    if not isinstance(context, Mapping):
        return RecordedContext()
    return _Parser().context(context)


class _Parser:
    """One pass over the key; `malformed` counts what was left out."""

    def __init__(self) -> None:
        self.malformed = 0

    # Values

    def _wrong(self) -> None:
        self.malformed += 1

    def number(self, record: Mapping[Any, Any], key: str) -> int | None:
        """An integer of at most 63 bits that is not negative."""
        value = record.get(key)
        # A bool is an int to Python, and none to a reader.
        if type(value) is int and 0 <= value < _ABOVE:
            return value
        if value is not None:
            self._wrong()
        return None

    def text(self, record: Mapping[Any, Any], key: str) -> str | None:
        value = record.get(key)
        if isinstance(value, str):
            return value
        if value is not None:
            self._wrong()
        return None

    def flag(self, record: Mapping[Any, Any], key: str) -> bool | None:
        value = record.get(key)
        if isinstance(value, bool):
            return value
        if value is not None:
            self._wrong()
        return None

    def seconds(self, record: Mapping[Any, Any], key: str) -> float | None:
        value = record.get(key)
        if isinstance(value, (int, float)) and 0 <= value < _ABOVE and not isinstance(value, bool):
            return float(value)
        if value is not None:
            self._wrong()
        return None

    def mapping(self, record: Mapping[Any, Any], key: str) -> Mapping[Any, Any]:
        value = record.get(key)
        if isinstance(value, Mapping):
            return value
        if value is not None:
            self._wrong()
        return {}

    def items(self, record: Mapping[Any, Any], key: str) -> Iterable[Any]:
        value = record.get(key)
        if isinstance(value, (list, tuple)):
            return value
        if value is not None:
            self._wrong()
        return ()

    def texts(self, record: Mapping[Any, Any], key: str) -> tuple[str, ...]:
        found = tuple(self.items(record, key))
        kept = tuple(item for item in found if isinstance(item, str))
        self.malformed += len(found) - len(kept)
        return kept

    def numbers(self, record: Mapping[Any, Any], key: str) -> tuple[int | None, ...]:
        """A number for each device; what is none keeps its place as None."""
        return tuple(self.number({key: item}, key) for item in self.items(record, key))

    def rows(
        self, record: Mapping[Any, Any], key: str, make: Callable[[Mapping[Any, Any]], _R | None]
    ) -> tuple[_R, ...]:
        """What `make` finds in each mapping of a list; what is no mapping, or nothing to it, is left out."""
        found = []
        for item in self.items(record, key):
            one = make(item) if isinstance(item, Mapping) else None
            if one is None:
                self._wrong()
            else:
                found.append(one)
        return tuple(found)

    def frame(self, item: Mapping[Any, Any]) -> Frame | None:
        filename, name = self.text(item, "filename"), self.text(item, "name")
        return None if filename is None else Frame(filename, self.number(item, "line") or 0, name or "")

    def frames(self, record: Mapping[Any, Any], key: str) -> tuple[Frame, ...]:
        return self.rows(record, key, self.frame)

    # Parts

    def device(self, item: Mapping[Any, Any]) -> RecordedDevice | None:
        index = self.number(item, "device")
        return RecordedDevice(
            index=index,
            name=self.text(item, "name"),
            uuid=self.text(item, "uuid"),
            total=self.number(item, "total"),
            free=self.number(item, "free"),
            cap=self.number(item, "cap"),
            memory_stats=self.statistics(item, "memory_stats"),
            processes=self.rows(item, "processes", self.process),
        )

    def statistics(self, item: Mapping[Any, Any], key: str) -> dict[str, int]:
        found = {name: value for name, value in self.mapping(item, key).items() if value != _NO_LIMIT}
        return {str(name): value for name in found if (value := self.number(found, name)) is not None}

    def pool(self, item: Mapping[Any, Any]) -> RecordedPool | None:
        first, *second = self.numbers(item, "pool") or (None,)
        if first is None or len(second) != 1 or second[0] is None:
            return None
        return RecordedPool((first, second[0]), self.text(item, "name"), self.text(item, "kind"))

    def process(self, item: Mapping[Any, Any]) -> RecordedProcess:
        return RecordedProcess(
            pid=self.number(item, "pid"),
            bytes=self.number(item, "bytes"),
            name=self.text(item, "name"),
            this=self.flag(item, "this"),
        )

    def request(self, item: Mapping[Any, Any]) -> RecordedRequest:
        return RecordedRequest(
            *(self.number(item, key) for key in ("device", "alloc_size", "limit_or_total", "device_free"))
        )

    def own_process(self, item: Mapping[Any, Any]) -> RecordedSelf:
        environment = self.mapping(item, "environment")
        return RecordedSelf(
            host=self.text(item, "host"),
            pid=self.number(item, "pid"),
            argv=self.texts(item, "argv"),
            rank=self.number(item, "rank"),
            local_rank=self.number(item, "local_rank"),
            world_size=self.number(item, "world_size"),
            environment={str(key): value for key in environment if (value := self.text(environment, key)) is not None},
        )

    def thread(self, item: Mapping[Any, Any]) -> RecordedThread:
        return RecordedThread(
            name=self.text(item, "name"),
            frames=self.frames(item, "frames"),
            failing=self.flag(item, "failing") or False,
            main=self.flag(item, "main") or False,
        )

    def stacks(self, item: Mapping[Any, Any]) -> RecordedStacks:
        return RecordedStacks(
            failing=self.frames(item, "failing"),
            main=self.frames(item, "main"),
            backward=self.frames(item, "backward"),
            gathering=self.rows(item, "gathering", self.gathering),
            threads=self.rows(item, "threads", self.thread),
            threads_left_out=self.number(item, "threads_left_out") or 0,
        )

    def gathering(self, item: Mapping[Any, Any]) -> RecordedGathering | None:
        at, last = self.frame(self.mapping(item, "at")), self.number(item, "last")
        backward = self.frames(item, "backward")
        return None if at is None or last is None else RecordedGathering(at, last, next(iter(backward), None))

    def autograd(self, item: Mapping[Any, Any]) -> RecordedAutograd:
        return RecordedAutograd(
            node=self.text(item, "node"),
            gradients_of=self.texts(item, "gradients_of"),
            forward=self.frames(item, "forward"),
        )

    def recording(self, item: Mapping[Any, Any]) -> RecordedHistory:
        return RecordedHistory(
            started_us=self.number(item, "started_us"),
            max_entries=self.number(item, "max_entries"),
            stacks=self.text(item, "stacks"),
            context=self.text(item, "context"),
            history=self.text(item, "history"),
            joined=self.flag(item, "joined"),
            observer=self.flag(item, "observer"),
            ooms=self.number(item, "ooms"),
            asked=self.texts(item, "asked"),
        )

    def steps(self, context: Mapping[Any, Any], key: str) -> tuple[RecordedStep, ...]:
        found = []
        for position, item in enumerate(self.items(context, key)):
            begin = self.number(item, "begin_us") if isinstance(item, Mapping) else None
            if begin is None:
                self._wrong()
                continue
            name = self.text(item, "name")
            found.append(
                RecordedStep(
                    name=str(position) if name is None else name,
                    begin_us=begin,
                    end_us=self.number(item, "end_us"),
                    peak_allocated=self.numbers(item, "peak_allocated"),
                    peak_reserved=self.numbers(item, "peak_reserved"),
                    allocated=self.numbers(item, "allocated"),
                    reserved=self.numbers(item, "reserved"),
                    retries=self.number(item, "retries"),
                    shape=self.mapping(item, "shape"),
                    count=max(1, self.number(item, "count") or 1),
                )
            )
        return tuple(found)

    def mark(self, item: Mapping[Any, Any]) -> RecordedMark | None:
        name, time_us = self.text(item, "name"), self.number(item, "time_us")
        return None if name is None or time_us is None else RecordedMark(name, time_us)

    def shape(self, item: Mapping[Any, Any]) -> tuple[int, ...] | None:
        """All sides or none: a part of them would be another shape."""
        sides = self.numbers(item, "shape")
        known = tuple(side for side in sides if side is not None)
        return known if isinstance(item.get("shape"), (list, tuple)) and len(known) == len(sides) else None

    def tensor(self, item: Mapping[Any, Any]) -> RecordedTensor:
        return RecordedTensor(
            device=self.number(item, "device"),
            address=self.number(item, "address"),
            bytes=self.number(item, "bytes"),
            dtype=self.text(item, "dtype"),
            shape=self.shape(item),
            category=self.text(item, "category"),
            name=self.text(item, "name"),
            saved_for=self.text(item, "saved_for"),
            visible=self.number(item, "visible"),
            unread=self.text(item, "unread"),
            holders=self.texts(item, "holders"),
        )

    def holder(self, item: Mapping[Any, Any]) -> RecordedHolder:
        at = item.get("at")
        return RecordedHolder(
            holder=self.text(item, "holder"),
            kind=self.text(item, "kind"),
            device=self.number(item, "device"),
            bytes=self.number(item, "bytes"),
            retained=self.number(item, "retained"),
            tensors=self.number(item, "tensors"),
            nodes=self.number(item, "nodes"),
            count=self.number(item, "count"),
            path=self.texts(item, "path"),
            length=self.number(item, "length"),
            maxlen=self.number(item, "maxlen"),
            place=self.text(item, "place"),
            finished=self.flag(item, "finished"),
            running=self.flag(item, "running"),
            at=None if at is None else self.frame(self.mapping(item, "at")),
            stores=self.frames(item, "stores"),
        )

    def unread(self, item: Mapping[Any, Any]) -> RecordedUnread:
        at = item.get("at")
        return RecordedUnread(
            holder=self.text(item, "holder"),
            place=self.text(item, "place"),
            device=self.number(item, "device"),
            bytes=self.number(item, "bytes"),
            tensors=self.number(item, "tensors"),
            reads=self.texts(item, "reads"),
            since=self.text(item, "since"),
            loop=self.number(item, "loop"),
            cache=self.flag(item, "cache") is True,
            others=self.texts(item, "others"),
            at=None if at is None else self.frame(self.mapping(item, "at")),
        )

    def walk(self, item: Mapping[Any, Any]) -> RecordedWalk:
        left_out = self.mapping(item, "left_out")
        return RecordedWalk(
            seconds=self.seconds(item, "seconds"),
            complete=self.flag(item, "complete"),
            objects=self.number(item, "objects"),
            tensors=self.number(item, "tensors"),
            nodes=self.number(item, "nodes"),
            notes=self.texts(item, "notes"),
            left_out_tensors=self.number(left_out, "tensors") or 0,
            left_out_bytes=self.number(left_out, "bytes") or 0,
        )

    def source(self, item: Mapping[Any, Any]) -> RecordedSource | None:
        filename, line, text = self.text(item, "filename"), self.number(item, "line"), self.texts(item, "text")
        first = self.number(item, "first") if "first" in item else None if line is None else max(line - 1, _LEAST_LINE)
        if filename is None or line is None or first is None or not first <= line < first + len(text):
            return None
        return RecordedSource(filename, line, first, text)

    def context(self, context: Mapping[Any, Any]) -> RecordedContext:
        exception, allocator = self.mapping(context, "exception"), self.mapping(context, "allocator")
        parts: dict[str, Any] = {
            "request": self.request(self.mapping(context, "request")),
            "devices": self.rows(context, "devices", self.device),
            "process": self.own_process(self.mapping(context, "process")),
            "stacks": self.stacks(self.mapping(context, "stacks")),
            "autograd": self.autograd(self.mapping(context, "autograd")),
            "recording": self.recording(self.mapping(context, "recording")),
            "steps": self.steps(context, "steps"),
            "steps_before": self.steps(context, "steps_before"),
            "marks": self.rows(context, "marks", self.mark),
            "metadata": self.mapping(context, "metadata"),
            "tensors": self.rows(context, "tensors", self.tensor),
            "holders": self.rows(context, "holders", self.holder),
            "unread": self.rows(context, "unread", self.unread),
            "tells_unread": "unread" in context,
            "walk": self.walk(self.mapping(context, "walk")),
            "sources": self.rows(context, "sources", self.source),
            "failures": self.texts(context, "failures"),
            "pools": self.rows(context, "pools", self.pool),
            "pinned_stats": self.statistics(context, "pinned_stats"),
        }
        texts: dict[str, Any] = {key: self.text(context, key) for key in _TEXTS}
        return RecordedContext(
            is_there=True,
            schema_version=self.number(context, "schema_version"),
            exception_type=self.text(exception, "type"),
            exception_message=self.text(exception, "message"),
            allocator_backend=self.text(allocator, "backend"),
            allocator_conf=self.text(allocator, "conf"),
            **texts,
            **parts,
            malformed=self.malformed,
        )
