"""Whatever a file holds: a report, or one clear sentence, in a time that its size explains.

In CI a few cases of each kind; ``python -m tests.hostile.fuzz`` tries as many as there is time for. What fails here is
kept in hypothesis's database (``.hypothesis``) and tried again first.
"""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.hostile import fuzz, fuzz_worker
from tests.hostile.fuzz_worker import Tally, Trial, underway
from tests.hostile.outcomes import WrongEndError, outcome
from tests.hostile.strategies import BASES, KINDS, Asked, Case, asked

EXAMPLES = int(os.environ.get("OOMSCOPE_FUZZ", "60"))
SECONDS, MIB = 5.0, 1 << 20

often = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    report_multiple_bugs=True,
)


def ends_well(case: Case, how: Asked) -> None:
    """Fail where reading, explaining and showing a file in one format is neither a report nor a sentence, or slow."""
    start = time.process_time()
    outcome(case.data, formats=(how.form,), whatif=how.whatif, redact=how.redact)
    taken = time.process_time() - start
    if taken > SECONDS:
        raise WrongEndError(f"{taken:.1f} s for {len(case.data):,} bytes")


@often
@given(KINDS["bytes of containers changed"], asked)
def test_bytes_of_real_containers_changed(case: Case, how: Asked) -> None:
    ends_well(case, how)


@often
@given(KINDS["soups of instructions"], asked)
def test_soups_of_instructions(case: Case, how: Asked) -> None:
    ends_well(case, how)


@often
@given(KINDS["documents changed"], asked)
def test_documents_changed(case: Case, how: Asked) -> None:
    ends_well(case, how)


@often
@given(KINDS["histories that cannot be"], asked)
def test_histories_that_cannot_be(case: Case, how: Asked) -> None:
    ends_well(case, how)


# The fuzzer that is run by hand

TEXT = Asked("text", whatif=False, redact=False)


def test_what_ends_wrongly_is_counted_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bad(data: bytes, **_: object) -> str:
        raise WrongEndError("half a page")

    trial, tally = Trial(tmp_path), Tally()
    trial.run(Case(BASES[0], BASES[0]), TEXT, "soups of instructions", tally)
    assert tally.ends == {"report": 1}
    assert [path.name for path in tmp_path.glob("soups-*")] == []
    monkeypatch.setattr(fuzz_worker, "outcome", bad)
    trial.run(Case(BASES[0], BASES[0]), TEXT, "soups of instructions", tally)
    assert tally.ends == {"report": 1, "wrong": 1}
    [kept] = tmp_path.glob("soups-*.bin")
    assert kept.read_bytes() == BASES[0]
    assert "half a page" in kept.with_suffix(".txt").read_text()


def test_what_is_slow_beside_its_whole_file_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(data: bytes, **_: object) -> str:
        end = time.process_time() + ({b"slow": 0.4, b"long": 0.1}.get(data, 0.002))
        while time.process_time() < end:
            pass
        return "report"

    monkeypatch.setattr(fuzz_worker, "outcome", slow)
    trial, tally = Trial(tmp_path), Tally()
    for data in (b"slow", b"long", b"quick"):
        trial.run(Case(data, b"whole"), TEXT, "soups of instructions", tally)
    assert tally.ends == {"report": 2, "slow report": 1}
    assert tally.most_times > 5


def test_what_takes_much_memory_is_counted_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_worker, "LARGE", 32)
    monkeypatch.setattr(fuzz_worker, "_is_slow", lambda *_: False)  # filling so much memory may take a while
    monkeypatch.setattr(fuzz_worker, "outcome", lambda data, **_: (data * MIB) and "report")
    trial, tally = Trial(tmp_path), Tally()
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    for size in (1, peak_mib + 100):
        trial.run(Case(b"x" * size, b"whole"), TEXT, "soups of instructions", tally)
    assert tally.ends == {"report": 1, "large report": 1}
    assert len(list(tmp_path.glob("soups-*.bin"))) == 1


def dies(connection: Connection, batch: int, step: int, seed: int, folder: Path) -> None:
    """A worker that ends at its first batch, and works at the next."""
    underway(folder, os.getpid()).write_bytes(b"deadly")
    if batch == 0:
        os._exit(9)
    tally = Tally(ends=Counter(report=100))
    while True:
        connection.send((batch, "documents changed", tally, 1024))
        batch += step


def test_a_case_that_ends_its_process_is_kept_and_the_others_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz, "work", dies)
    assert fuzz.main(["--cases", "250", "--jobs", "1", "--seconds", "60", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "'killed': 1" in said
    assert "exit code 9" in (tmp_path / "killed-0-0.txt").read_text()
    assert [path.name for path in tmp_path.glob("*.bin")] == ["killed-0-0.bin"]
    assert (tmp_path / "killed-0-0.bin").read_bytes() == b"deadly"
