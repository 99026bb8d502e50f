"""``oomscope report``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from oomscope.commands.common import options, pipeline
from oomscope.commands.common.output import STDOUT, check_target, default_output, write, write_binary
from oomscope.commands.common.progress import Progress
from oomscope.commands.common.timelines import timeline_report
from oomscope.rendering.formats import FORMATS, format_of

if TYPE_CHECKING:
    from oomscope.analysis.findings import Findings


@click.command("report")
@options.snapshot_argument
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Output format.  [default: by the suffix of -o, else html]",
)
@options.output_options
@options.analysis_options
@options.window_option
@options.redact_options
@options.source_options
@click.option("--title", help="Title of the report; never redacted.")
@click.option(
    "--bundle",
    type=click.Path(),
    metavar="ZIP",
    help="Instead, write a zip file of at most 25 MB with HTML, Markdown, JSON and the snapshot, for a ticket.",
)
@click.option("--open", "opens", is_flag=True, help="Open the HTML report in the browser.")
@options.debug_option
def command(
    snapshot: str,
    form: str | None,
    output: str | None,
    force: bool,
    at: str | int,
    device: int | None,
    no_whatif: bool,
    whatif_seconds: float | None,
    window: str | None,
    redact: bool,
    redact_key: Path | None,
    source: Path | None,
    no_source: bool,
    title: str | None,
    bundle: str | None,
    opens: bool,
) -> None:
    """Explain a snapshot as one HTML file, Markdown, JSON or text.

    Unless -o is given, HTML goes to a file in the current folder, named after the snapshot, and the other formats go
    to stdout. For a snapshot from stdin (-), HTML goes to stdout as well.

    Files of other tools that hold memory by category over time (export_memory_timeline of torch.profiler as JSON,
    the page of mosaic) get a report of that.
    """
    if bundle and (output or form):
        raise click.UsageError("--bundle cannot be combined with -o or -f.", click.get_current_context())
    form = form or format_of(output or "")
    output = output or bundle or (default_output(snapshot, ".html") if form == "html" else STDOUT)
    options.check_source(source, no_source=no_source, redact=redact, bundle=bundle)
    _check("zip" if bundle else form, output, opens=opens, redact=redact, redact_key=redact_key)
    check_target(output, force=force, source=snapshot)
    check_target(str(redact_key) if redact_key else None, force=force, source=snapshot)
    from oomscope.reading.category_timelines import TimelineFoundError

    try:
        findings = pipeline.find(
            snapshot,
            at=at,
            device=device,
            window=window,
            whatif=not no_whatif,
            whatif_seconds=whatif_seconds,
            redact=redact,
            redact_key=redact_key,
            force=force,
            no_source=no_source,
        )
    except TimelineFoundError as found:
        for_snapshots = {"--at": at != "auto", "--device": device is not None, "--window": window, "--redact": redact}
        asked = [name for name, given in (for_snapshots | {"--bundle": bundle}).items() if given]
        write(timeline_report(found, form, title, asked), output, force=force)
        _open(output, opens)
        return
    if bundle:
        write_binary(_packed(findings, title), bundle, force=force)
        return
    write(_rendered(findings, form, title, source), output, force=force)
    _open(output, opens)


def _packed(findings: Findings, title: str | None) -> bytes:
    from oomscope.commands.common.bundle import bundle

    with Progress() as progress:
        progress.stage("rendering")
        return bundle(findings, title)


def _rendered(findings: Findings, form: str, title: str | None, source: Path | None) -> str:
    from oomscope.rendering.common.sources import Sources
    from oomscope.rendering.formats import render

    with Progress() as progress:
        progress.stage("rendering")
        if form == "html":
            from oomscope.rendering.html.quick_matplotlib import load_matplotlib

            load_matplotlib()
        return render(findings, form, title, Sources(findings.snapshot, source))


def _open(output: str, opens: bool) -> None:
    if opens:
        import webbrowser

        webbrowser.open(Path(output).resolve().as_uri())


def _check(form: str, output: str, *, opens: bool, redact: bool, redact_key: Path | None) -> None:
    if opens and (form != "html" or output == STDOUT):
        raise click.UsageError("--open needs an HTML report in a file.", click.get_current_context())
    options.check_redaction(redact, redact_key)
