"""``oomscope export``: a snapshot for other tools."""

from __future__ import annotations

from pathlib import Path

import click

from oomscope.commands.common import options, pipeline
from oomscope.commands.common.output import check_target, default_output, write, write_binary
from oomscope.commands.common.progress import Progress

SUFFIXES = {"memory-viz": ".pickle", "json": ".json"}


@click.command("export")
@options.snapshot_argument
@click.option("--to", "form", type=click.Choice(tuple(SUFFIXES)), required=True, help="Output format.")
@options.output_options
@options.redact_options
@options.debug_option
def command(snapshot: str, form: str, output: str | None, force: bool, redact: bool, redact_key: Path | None) -> None:
    """Convert a snapshot for other tools.

    memory-viz is the pickle that torch writes, converted from any SNAPSHOT; it opens at pytorch.org/memory_viz.

    Unless -o is given, the result goes to a file in the current folder, named after the snapshot: run.pickle.xz
    becomes run.export.pickle. For a snapshot from stdin (-) it goes to stdout.
    """
    options.check_redaction(redact, redact_key)
    output = output or default_output(snapshot, f".{'redacted' if redact else 'export'}{SUFFIXES[form]}")
    check_target(output, force=force, source=snapshot)
    with Progress() as progress:
        loaded = pipeline.read(snapshot, progress)
        if redact:
            loaded = pipeline.redacted(loaded, redact_key, force)
        progress.stage("writing")
        from oomscope.export import memory_viz
        from oomscope.reading.unpickling import collector_paused

        if form == "json":
            write(memory_viz.to_json(loaded), output, force=force)
        else:
            with collector_paused():
                content = memory_viz.to_pickle(loaded)
            write_binary(content, output, force=force)
