"""``oomscope export``: a snapshot for other tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from oomscope.commands.common import options, pipeline
from oomscope.commands.common.output import check_target, default_output, stem, write_chunks
from oomscope.commands.common.progress import Progress

if TYPE_CHECKING:
    from oomscope.model import Snapshot

SUFFIXES = {
    "memory-viz": ".pickle",
    "json": ".json",
    "speedscope": ".speedscope.json",
    "perfetto": ".perfetto.json",
}


@dataclass(frozen=True, slots=True)
class _Conversion:
    """What is to be written of a snapshot."""

    form: str
    name: str
    at: str | int


@click.command("export")
@options.snapshot_argument
@click.option("--to", "form", type=click.Choice(tuple(SUFFIXES)), required=True, help="Output format.")
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

    Unless -o is given, the result goes to a file in the current folder, named after the snapshot: run.pickle.xz
    becomes run.export.pickle. For a snapshot from stdin (-) it goes to stdout.
    """  # noqa: D301 - click's mark for lines that are kept apart
    options.check_redaction(redact, redact_key)
    output = output or default_output(snapshot, _suffix(form, redact))
    check_target(output, force=force, source=snapshot)
    with Progress() as progress:
        loaded = pipeline.read(snapshot, progress)
        if redact:
            loaded = pipeline.redacted(loaded, redact_key, force)
        if device is not None:
            loaded = _only(loaded, device)
        if window is not None:
            loaded = _cut(loaded, window)
        progress.stage("writing")
        from oomscope.reading.unpickling import collector_paused

        name = "snapshot" if redact else stem(snapshot)
        with collector_paused():
            write_chunks(_chunks(loaded, _Conversion(form, name, at)), output, force=force)


def _suffix(form: str, redact: bool) -> str:
    """With ``export`` in it where the suffix alone would name the snapshot itself."""
    plain = SUFFIXES[form]
    return f".redacted{plain}" if redact else f".export{plain}" if plain in (".pickle", ".json") else plain


def _only(snapshot: Snapshot, index: int) -> Snapshot:
    from oomscope.analysis.study import SnapshotStudy

    SnapshotStudy(snapshot).device(index)
    return replace(snapshot, devices=(snapshot.device(index),))


def _cut(snapshot: Snapshot, window: str) -> Snapshot:
    from oomscope.analysis.study import SnapshotStudy
    from oomscope.export.window import cut, windows

    study = SnapshotStudy(snapshot)
    return cut(study, windows(study, window))


def _chunks(snapshot: Snapshot, wanted: _Conversion) -> Iterator[bytes]:
    if wanted.form in ("memory-viz", "json"):
        from oomscope.export import memory_viz

        yield memory_viz.to_json(snapshot).encode() if wanted.form == "json" else memory_viz.to_pickle(snapshot)
        return
    from oomscope.analysis.study import SnapshotStudy

    study = SnapshotStudy(snapshot)
    if wanted.form == "speedscope":
        from oomscope.export.speedscope import to_speedscope

        yield from to_speedscope(study, wanted.name, wanted.at)
    else:
        from oomscope.export.perfetto import to_perfetto

        yield from to_perfetto(study)
