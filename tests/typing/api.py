"""How programs use oomscope's public names, for mypy: it is checked, never run (test_typing.py)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from typing_extensions import assert_type

import oomscope
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.ledger.records import Ledger
from oomscope.analysis.plan.records import Plan
from oomscope.analysis.verdict.records import Oom, Verdict
from oomscope.recording import Recording


def reading() -> None:
    snapshot = oomscope.load("oom.pickle")
    assert_type(snapshot, oomscope.Snapshot)
    assert_type(oomscope.load(Path("oom.pickle.xz"), limits=False), oomscope.Snapshot)
    assert_type(oomscope.load(BytesIO(b""), progress=lambda done, total, entries: None), oomscope.Snapshot)
    assert_type(snapshot.entries, int)
    assert_type(snapshot.device(0).layout.allocated, int)
    assert_type(snapshot.recorded.torch, str | None)
    oomscope.load(3)  # type: ignore[arg-type]


def explaining(snapshot: oomscope.Snapshot) -> None:
    findings = oomscope.analyze(snapshot, at="peak", device=0, whatif=False, whatif_seconds=1.5)
    assert_type(findings, oomscope.Findings)
    assert_type(oomscope.analyze(snapshot, at=17), oomscope.Findings)
    device = findings.device(0)
    assert_type(device, DeviceFindings)
    assert_type(findings.main, DeviceFindings | None)
    assert_type(device.oom, Oom | None)
    _ = device.oom.verdict  # type: ignore[union-attr]
    if device.oom is not None:
        assert_type(device.oom.verdict, Verdict)
        assert_type(device.oom.verdict.cause, str)
    assert_type(oomscope.write_report(findings, "oom.html", title="Job 7", force=True), Path)
    oomscope.analyze("oom.pickle")  # type: ignore[arg-type]
    oomscope.analyze(snapshot, when="peak")  # type: ignore[call-arg]
    _ = findings.main.usage  # type: ignore[union-attr]


def predicting(snapshot: oomscope.Snapshot) -> None:
    assert_type(oomscope.plan(snapshot, at={"batch": 8}, wanted=[{"batch": 16}], gpus=["24GiB"]), Plan)
    assert_type(oomscope.plan([snapshot, snapshot]).predictions[0].peak_allocated.high, int)
    assert_type(oomscope.remedies(snapshot, ["accumulate=4"]), Ledger)
    assert_type(oomscope.remedies(snapshot).rows[0].enough, bool | None)
    oomscope.plan(snapshot, at={"batch": "8"})  # type: ignore[dict-item]


def failing() -> str:
    try:
        oomscope.load("oom.pickle")
    except oomscope.OomscopeError as error:
        return str(error)
    return oomscope.__version__


@oomscope.record
def train(epochs: int, *, rate: float = 0.1) -> list[float]:
    return [rate] * epochs


@oomscope.record(output_dir="oom", max_entries=200_000)
def evaluate(name: str) -> bool:
    return bool(name)


@oomscope.record
def batches(count: int) -> Iterator[int]:
    yield from range(count)


@oomscope.record
async def serve(port: int) -> str:
    return str(port)


@oomscope.record
async def stream() -> AsyncIterator[int]:
    yield 1


class Trainer:
    @oomscope.record
    def fit(self, epochs: int) -> int:
        return epochs


def decorated() -> None:
    """What is decorated keeps its type."""
    assert_type(train(3, rate=0.5), list[float])
    assert_type(evaluate("a"), bool)
    assert_type(batches(3), Iterator[int])
    assert_type(asyncio.run(serve(80)), str)
    assert_type(stream(), AsyncIterator[int])
    assert_type(Trainer().fit(3), int)
    train("3")  # type: ignore[arg-type]
    evaluate()  # type: ignore[call-arg]
    Trainer().fit("3")  # type: ignore[arg-type]


def recorded(model: Any, loader: list[int]) -> Path | None:
    with oomscope.record(on=("oom", "exit")) as recording:
        assert_type(recording, Recording)
        recording.track(model=model)
        for _ in loader:
            with recording.step(batch=8, seq=512):
                pass
        recording.mark("eval")
        recording.step(batch="8")  # type: ignore[arg-type]
        return recording.snapshot("now.pickle")


hook: Callable[[str], bool] = evaluate
