"""``oomscope export``: a snapshot for other tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from oomscope.commands.common import options, pipeline
from oomscope.commands.common.output import STDOUT, check_target, default_output, stem, write_chunks
from oomscope.commands.common.progress import Progress
from oomscope.frozen import frozen

if TYPE_CHECKING:
    from oomscope.analysis.study import SnapshotStudy
    from oomscope.model import Snapshot

SUFFIXES = {
    "memory-viz": ".pickle",
    "json": ".json",
    "speedscope": ".speedscope.json",
    "perfetto": ".perfetto.json",
    "csv": ".csv",
    "parquet": ".parquet",
}
TABULAR = ("csv", "parquet")
TABLES = ("lifetimes", "curves", "steps", "recorded-steps", "stacks")
_RECORDED = "recorded-steps"


@frozen
class _Conversion:
    """What is to be written, and where; of tables, which one."""

    form: str
    output: str
    table: str | None = None


@click.command("export")
@options.snapshot_argument
@click.option("--to", "form", type=click.Choice(tuple(SUFFIXES)), required=True, help="Output format.")
@click.option(
    "--table",
    type=click.Choice(TABLES),
    help="csv, parquet: only this table.  [default: each into a file of its own]",
)
@click.option(
    "--at",
    type=options.Instant(),
    default="auto",
    show_default=True,
    help="speedscope: the instant at which live bytes are shown.",
)
@click.option(
    "--window",
    type=options.WindowText(),
    help="Export only this part of the trace, such as 95%:100%, 1000:2000, peak: or :oom, as though nothing else had"
    " been recorded; what lived before it is kept.",
)
@click.option("--device", type=click.IntRange(min=0), metavar="N", help="Export this device only (CUDA index).")
@options.output_options
@options.redact_options
@options.debug_option
def command(
    snapshot: str,
    form: str,
    table: str | None,
    at: str | int,
    window: str | None,
    device: int | None,
    output: str | None,
    force: bool,
    redact: bool,
    redact_key: Path | None,
) -> None:
    """Convert a snapshot for other tools.

    \b
    memory-viz  the pickle that torch writes, from any SNAPSHOT; opens at pytorch.org/memory_viz
    json        the same as JSON
    speedscope  bytes by stack, live at --at and allocated in all; opens at speedscope.app
    perfetto    memory over time with steps, phases, passes and OOMs; opens at ui.perfetto.dev
    csv         tables of lifetimes, curves, steps and stacks; parquet needs oomscope[parquet]

    Unless -o is given, the result goes to a file in the current folder, named after the snapshot: run.pickle.xz
    becomes run.export.pickle. For a snapshot from stdin (-) it goes to stdout.
    """  # noqa: D301 - click's mark for lines that are kept apart
    options.check_redaction(redact, redact_key)
    wanted = _wanted(snapshot, form, table, output, redact)
    for one in wanted:
        check_target(one.output, force=force, source=snapshot)
    with Progress() as progress:
        loaded = pipeline.read(snapshot, progress)
        if redact:
            loaded = pipeline.redacted(loaded, redact_key, force)
        if device is not None:
            loaded = _only(loaded, device)
        if window is not None:
            from oomscope.commands.common.windows import only

            loaded = only(loaded, window)
        progress.stage("writing")
        name = "snapshot" if redact else stem(snapshot)
        _write(loaded, wanted, name, at, force)


def _wanted(snapshot: str, form: str, table: str | None, output: str | None, redact: bool) -> list[_Conversion]:
    """The files to be written.

    Raises:
        UsageError: a table is named that `form` does not have, or several would go to one place.
    """
    context = click.get_current_context()
    if table is not None and form not in TABULAR:
        raise click.UsageError("--table needs --to csv or --to parquet.", context)
    if table is None and form in TABULAR:
        if output is not None or snapshot == STDOUT:
            raise click.UsageError("Several tables cannot go to one place; choose one with --table.", context)
        return [_Conversion(form, default_output(snapshot, _suffix(form, redact, one)), one) for one in TABLES]
    return [_Conversion(form, output or default_output(snapshot, _suffix(form, redact, table)), table)]


def _suffix(form: str, redact: bool, table: str | None) -> str:
    """With ``export`` in it where the suffix alone would name the snapshot itself."""
    plain = f".{table}{SUFFIXES[form]}" if table else SUFFIXES[form]
    return f".redacted{plain}" if redact else f".export{plain}" if form in ("memory-viz", "json") else plain


def _only(snapshot: Snapshot, index: int) -> Snapshot:
    from oomscope.analysis.study import SnapshotStudy

    SnapshotStudy(snapshot).device(index)
    return replace(snapshot, devices=(snapshot.device(index),))


def _write(snapshot: Snapshot, wanted: list[_Conversion], name: str, at: str | int, force: bool) -> None:
    from oomscope.analysis.study import SnapshotStudy
    from oomscope.reading.unpickling import collector_paused

    study = SnapshotStudy(snapshot)
    several = len(wanted) > 1
    for one in wanted:
        if several and one.table == _RECORDED and not snapshot.recorded.steps:
            continue
        with collector_paused() if one.form in ("memory-viz", "json") else nullcontext():
            write_chunks(_chunks(study, one, name, at), one.output, force=force)


def _chunks(study: SnapshotStudy, wanted: _Conversion, name: str, at: str | int) -> Iterator[bytes]:
    if wanted.form == "speedscope":
        from oomscope.export.speedscope import to_speedscope

        yield from to_speedscope(study, name, at)
    elif wanted.form == "perfetto":
        from oomscope.export.perfetto import to_perfetto

        yield from to_perfetto(study)
    elif wanted.form in TABULAR:
        from oomscope.export.delimited import to_csv
        from oomscope.export.parquet import to_parquet
        from oomscope.export.tables import tables

        table = next(one for one in tables(study) if one.name == wanted.table)
        yield from to_csv(table) if wanted.form == "csv" else to_parquet(table)
    else:
        from oomscope.export import memory_viz

        write = memory_viz.as_json if wanted.form == "json" else memory_viz.pickled
        yield from write(study.snapshot)
