"""Programs that run out of memory for a known reason, run by the model of the allocator.

Each is generated from a seed and ends with the request that fails. That it fails, and what alone would have saved
it, is checked by running it again without that one thing: without walls between pools, on one stream, on a card
that is all its own, without what it leaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from oomscope.allocator.limits import Limit
from oomscope.model import Snapshot
from tests import builders
from tests.builders import frame
from tests.whatif.recorder import Recorder

MIB = 1 << 20
GIB = 1 << 30
SITE_PACKAGES = "/venv/lib/python3.12/site-packages"


class TimedRecorder(Recorder):
    """A recorder whose entries are a microsecond apart."""

    def _note(self, action: str, address: int, size: int, stream: int, frames: Any = None) -> None:
        super()._note(action, address, size, stream, frames)
        self.entries[-1]["time_us"] += 10 * len(self.entries)


@dataclass(frozen=True)
class Malloc:
    name: int
    size: int
    stream: int = 0
    pool: int = 0
    line: int = 10
    kept: bool = False
    """Kept by mistake: a program without the mistake frees it in the next step."""


@dataclass(frozen=True)
class Free:
    name: int


@dataclass(frozen=True)
class Program:
    """What a process did, and under what."""

    operations: tuple[Malloc | Free, ...]
    limit: Limit
    conf: str = ""
    outside: int = 0
    total: int | None = None

    def run(self) -> tuple[TimedRecorder, bool]:
        """The process, and whether its last request was served."""
        recorder, served = TimedRecorder(self.conf, self.limit), True
        for operation in self.operations:
            if isinstance(operation, Free):
                recorder.free(operation.name)
            else:
                frames = stack(operation.line)
                served = recorder.malloc(operation.name, operation.size, operation.stream, operation.pool, frames)
                if not served:
                    break
        return recorder, served and operation is self.operations[-1]

    def snapshot(self, *, with_context: bool = False) -> Snapshot:
        """What was dumped when the last request failed."""
        recorder, served = self.run()
        assert not served
        assert recorder.entries[-1]["action"] == "oom"
        top: dict[str, Any] = {}
        if with_context:
            free = recorder.entries[-1]["device_free"]
            total = self.total or recorder.allocator.reserved + free + self.outside
            devices = [{"device": 0, "total": total, "free": free, "cap": self.limit.cap}]
            top["oomscope"] = {"schema_version": 1, "devices": devices}
        return recorder.snapshot(**top)

    def succeeds(self, **changes: Any) -> bool:
        return replace(self, **changes).run()[1]

    def each(self, change: Callable[[Malloc], Malloc]) -> tuple[Malloc | Free, ...]:
        return tuple(change(one) if isinstance(one, Malloc) else one for one in self.operations)

    @property
    def live(self) -> int:
        """Bytes asked for and not given back before the last request."""
        sizes = {one.name: one.size for one in self.operations[:-1] if isinstance(one, Malloc)}
        for one in self.operations:
            if isinstance(one, Free):
                sizes.pop(one.name)
        return sum(sizes.values())


def stack(line: int) -> list[builders.Dict]:
    """A stack of `line` of the program; from line 900 on, inside an optimizer's step."""
    outer = [frame("train", 5, "/workspace/train/train.py"), frame("<module>", 99, "/workspace/train/train.py")]
    if line >= 900:
        optimizer = f"{SITE_PACKAGES}/torch/optim"
        adamw = [
            frame("_multi_tensor_adamw", line, f"{optimizer}/adamw.py"),
            frame("step", 240, f"{optimizer}/adamw.py"),
        ]
        return [*adamw, frame("wrapper", 500, f"{optimizer}/optimizer.py"), *outer]
    return [
        frame("forward", 134, f"{SITE_PACKAGES}/torch/nn/modules/linear.py"),
        frame("_call_impl", 1790, f"{SITE_PACKAGES}/torch/nn/modules/module.py"),
        frame("forward", line, "/workspace/train/model.py"),
        *outer,
    ]


@dataclass
class Writer:
    """Writes a program down."""

    random: Random
    operations: list[Malloc | Free] = field(default_factory=list)
    names: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    def malloc(self, size: int, **more: Any) -> int:
        name = next(self.names)
        self.operations.append(Malloc(name, size, **more))
        return name

    def free(self, name: int) -> None:
        self.operations.append(Free(name))

    def fill(self, total: int, low: float, high: float, **more: Any) -> list[int]:
        """Blocks of `low` to `high` MiB, `total` bytes in all."""
        names, made = [], 0
        while made < total:
            size = int(self.random.uniform(low, high) * MIB)
            made += size
            names.append(self.malloc(size, **more))
        return names

    def program(self, limit: Limit, **more: Any) -> Program:
        return Program(tuple(self.operations), limit, **more)


def limit_of(random: Random, size: int) -> Limit:
    return Limit(cap=size) if random.random() < 0.5 else Limit(capacity=size)


def fragmentation(seed: int) -> Program:
    random = Random(seed)
    writer, size = Writer(random), random.choice([1, 2, 3]) * GIB
    conf = random.choice(["", "expandable_segments:True", "roundup_power2_divisions:8"])
    names = writer.fill(int(0.9 * size), 2, 9, line=20)
    drop = random.uniform(0.45, 0.6)
    dropped = {name for at, name in enumerate(names) if int(at * drop) != int((at + 1) * drop)}
    for name in sorted(dropped):
        writer.free(name)
    live = writer.program(Limit()).live
    request = int((size - live) * random.uniform(0.4, 0.75))
    writer.malloc(request, line=30)
    return writer.program(limit_of(random, size), conf=conf)


def capacity(seed: int) -> Program:
    random = Random(seed)
    writer, size = Writer(random), random.choice([1, 2, 3]) * GIB
    conf = random.choice(["", "expandable_segments:True", "max_split_size_mb:64"])
    writer.fill(int(random.uniform(0.5, 0.85) * size), 12, 70, line=20)
    temporary = writer.fill(int(0.05 * size), 11, 20, line=21)
    for name in temporary:
        writer.free(name)
    live = writer.program(Limit()).live
    writer.malloc(int((size - live) * random.uniform(1.02, 1.5)), line=30)
    return writer.program(limit_of(random, size), conf=conf)


def private_pools(seed: int) -> Program:
    random = Random(seed)
    writer, size = Writer(random), random.choice([2, 3]) * GIB
    writer.fill(int(random.uniform(0.1, 0.25) * size), 5, 40, line=20)
    walled = []
    for pool in (pools := random.choice([[1], [1, 2]])):
        walled += writer.fill(int(random.uniform(0.55, 0.62) / len(pools) * size), 20, 60, pool=pool, line=22)
    kept = len(walled) // 10
    for name in walled[kept:]:
        writer.free(name)
    writer.malloc(int(size * random.uniform(0.36, 0.42)), line=30)
    return writer.program(limit_of(random, size))


def other_stream(seed: int) -> Program:
    random = Random(seed)
    writer, size = Writer(random), random.choice([2, 3]) * GIB
    writer.fill(int(random.uniform(0.1, 0.2) * size), 5, 40, line=20)
    # A large block of the side stream is given back, and a small one takes its beginning.
    big = int(random.uniform(0.5, 0.65) * size)
    writer.free(writer.malloc(big, stream=7, line=22))
    writer.malloc(random.randint(11, 40) * MIB, stream=7, line=23)
    writer.malloc(int(random.uniform(0.8, 0.9) * big), line=30)
    return writer.program(limit_of(random, size))


def oversized_request(seed: int) -> Program:
    random = Random(seed)
    writer, size = Writer(random), random.choice([2, 3]) * GIB
    writer.fill(int(random.uniform(0.0, 0.5) * size), 5, 40, line=20)
    writer.malloc(int(random.uniform(1.05, 40) * size), line=30)
    return writer.program(limit_of(random, size), total=size)


def outside_allocator(seed: int) -> Program:
    random = Random(seed)
    total = random.choice([8, 16]) * GIB
    outside = int(random.uniform(0.5, 0.8) * total)
    writer, room = Writer(random), total - outside
    writer.fill(int(random.uniform(0.7, 0.95) * room), 20, 90, line=20)
    live = writer.program(Limit()).live
    writer.malloc(int((room - live) * random.uniform(1.05, 2)), line=30)
    return writer.program(Limit(capacity=room), outside=outside, total=total)


def growth(seed: int) -> Program:
    random = Random(seed)
    writer, size = Writer(random), random.choice([1, 2]) * GIB
    layers = [random.randint(2, 20) * MIB for _ in range(8)]
    weights = [writer.malloc(layer // 4, line=40 + at) for at, layer in enumerate(layers)]
    leak = int(size * random.uniform(0.03, 0.06))
    used, step = 0, 0
    previous: int | None = None
    while used + sum(layers) * 2 < size + leak * 3:
        activations = [writer.malloc(layer, line=50 + at) for at, layer in enumerate(layers)]
        previous = writer.malloc(leak, line=70, kept=True)
        for name in reversed(activations):
            gradient = writer.malloc(layers[0] // 4, line=80)
            writer.free(name)
            writer.free(gradient)
        if step == 0:
            for at in range(len(weights)):
                writer.malloc(layers[at] // 4, line=905)
                writer.malloc(layers[at] // 4, line=906)
        writer.free(writer.malloc(sum(layers) // 4, line=910))
        used, step = used + leak, step + 1
    assert previous is not None
    return writer.program(limit_of(random, size), conf=random.choice(["", "expandable_segments:True"]))


def tight(seed: int) -> Program:
    """Had the free bytes been one piece, the request would have fitted with less than the margin: capacity."""
    random = Random(seed)
    writer, size = Writer(random), random.choice([1, 2]) * GIB
    names = writer.fill(int(0.9 * size), 2, 9, line=20)
    for name in names[::8]:
        writer.free(name)
    live = writer.program(Limit()).live
    writer.malloc(size - live - int(size * random.uniform(0.002, 0.015)), line=30)
    return writer.program(Limit(cap=size))


def holes_of_another_stream(seed: int) -> Program:
    """Free bytes of another stream, in holes that would not have served the request there either."""
    random = Random(seed)
    writer, size = Writer(random), random.choice([1, 2]) * GIB
    names = writer.fill(int(0.85 * size), 2, 9, stream=7, line=20)
    for name in names[::2]:
        writer.free(name)
    writer.malloc(int(size * random.uniform(0.25, 0.35)), line=30)
    return writer.program(Limit(cap=size))


def walls_at_a_higher_limit(seed: int) -> Program:
    """Whether the request would have fitted without the walls depends on a cap that nobody recorded."""
    random = Random(seed)
    writer, size = Writer(random), random.choice([2, 3]) * GIB
    writer.fill(int(random.uniform(0.1, 0.25) * size), 5, 40, line=20)
    walled = writer.fill(int(random.uniform(0.2, 0.3) * size), 20, 60, pool=1, line=22)
    for name in walled:
        writer.free(name)
    live = writer.program(Limit()).live
    writer.malloc(int((size - live) * random.uniform(0.85, 0.92)), line=30)
    return writer.program(Limit(cap=size))


def larger_batch(seed: int) -> Program:
    """Steps that leave nothing behind, then one on a batch that does not fit: capacity, and no growth."""
    random = Random(seed)
    writer, size = Writer(random), random.choice([1, 2]) * GIB
    layers = [random.randint(3, 9) * MIB for _ in range(8)]
    weights = [writer.malloc(layer // 4, line=40 + at) for at, layer in enumerate(layers)]
    steps = random.randint(3, 9)
    for step in range(steps):
        factor = random.uniform(0.7, 1.0)
        activations = [writer.malloc(int(layer * factor), line=50 + at) for at, layer in enumerate(layers)]
        for name in reversed(activations):
            gradient = writer.malloc(layers[0] // 4, line=80)
            writer.free(name)
            writer.free(gradient)
        if step == 0:
            for at in range(len(weights)):
                writer.malloc(layers[at] // 4, line=905)
                writer.malloc(layers[at] // 4, line=906)
        writer.free(writer.malloc(sum(layers) // 4, line=910))
    factor = 1.2 * size / sum(layers)
    for at, layer in enumerate(layers):
        writer.malloc(int(layer * factor), line=50 + at)
    return writer.program(limit_of(random, size), conf=random.choice(["", "expandable_segments:True"]))


KINDS: dict[str, Callable[[int], Program]] = {
    made.__name__: made
    for made in (fragmentation, capacity, private_pools, other_stream, oversized_request, outside_allocator, growth)
}


def without_leak(program: Program) -> Program:
    """The program with each kept block given back when the next one is made."""
    operations: list[Malloc | Free] = []
    previous: int | None = None
    for one in program.operations:
        if isinstance(one, Malloc) and one.kept:
            if previous is not None:
                operations.append(Free(previous))
            previous = one.name
        operations.append(one)
    return replace(program, operations=tuple(operations))


def saved_by(kind: str, program: Program) -> bool:
    """Whether the one thing that `kind` names would have let the program live."""
    limit = program.limit
    bound = limit.bytes
    assert bound is not None
    if kind == "private_pools":
        return program.succeeds(operations=program.each(lambda one: replace(one, pool=0)))
    if kind == "other_stream":
        return program.succeeds(operations=program.each(lambda one: replace(one, stream=0)))
    if kind == "outside_allocator":
        return program.succeeds(limit=Limit(capacity=bound + max(program.outside - GIB, 0)))
    if kind == "growth":
        return without_leak(program).run()[1]
    request = program.operations[-1]
    assert isinstance(request, Malloc)
    if kind == "oversized_request":
        return request.size > bound
    if kind == "fragmentation":
        return program.live + request.size <= 0.97 * bound
    return program.live + request.size > bound
