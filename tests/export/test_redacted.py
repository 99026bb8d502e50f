"""Of a snapshot with a secret in every text, no redacted export holds one, whatever its format."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from oomscope.analysis.study import SnapshotStudy
from oomscope.export import memory_viz
from oomscope.export.delimited import to_csv
from oomscope.export.parquet import to_parquet
from oomscope.export.perfetto import to_perfetto
from oomscope.export.speedscope import to_speedscope
from oomscope.export.tables import tables
from oomscope.export.window import cut, windows
from oomscope.model import Snapshot
from oomscope.redaction.snapshot import redact
from tests.rendering.secrets import SECRET, secret_snapshot


def parquet_text(study: SnapshotStudy) -> str:
    parquet = pytest.importorskip("pyarrow.parquet")
    read = [parquet.read_table(io.BytesIO(b"".join(to_parquet(table)))) for table in tables(study)]
    return "".join(f"{table.schema}{table.to_pydict()}" for table in read)


TEXTS: dict[str, Callable[[SnapshotStudy], str]] = {
    "memory-viz": lambda study: memory_viz.to_pickle(study.snapshot).decode("latin-1"),
    "json": lambda study: memory_viz.to_json(study.snapshot),
    "speedscope": lambda study: b"".join(to_speedscope(study, "it")).decode(),
    "perfetto": lambda study: b"".join(to_perfetto(study)).decode(),
    "csv": lambda study: b"".join(part for table in tables(study) for part in to_csv(table)).decode(),
    "parquet": parquet_text,
}


def part_of(snapshot: Snapshot) -> SnapshotStudy:
    study = SnapshotStudy(snapshot)
    return SnapshotStudy(cut(study, windows(study, "10%:90%")))


@pytest.mark.parametrize("form", TEXTS)
def test_no_secret_is_in_it(form: str):
    secret = secret_snapshot()
    hidden, _ = redact(secret)
    assert SECRET.findall(TEXTS[form](SnapshotStudy(secret))), "the test sees none where there are some"
    for study in (SnapshotStudy(hidden), part_of(hidden)):
        assert SECRET.findall(TEXTS[form](study)) == []
