"""``oomscope report``: the main job."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from oomscope.commands.common import options, pipeline
from oomscope.commands.common.output import STDOUT, check_target, default_output, write, write_binary
from oomscope.rendering.formats import FORMATS, format_of


@click.command("report")
@options.snapshot_argument
@click.option("-f", "--format", "form", type=click.Choice(FORMATS), help="What to write; by the name of -o, else html.")
@options.output_options
@options.analysis_options
@options.redact_options
@click.option("--title", help="A title for the report; shown as given, with --redact as well.")
@click.option(
    "--bundle",
    type=click.Path(),
    metavar="ZIP",
    help="Instead, pack HTML, Markdown, JSON and the snapshot into one file of at most 25 MB to attach to a ticket.",
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
    redact: bool,
    redact_key: Path | None,
    title: str | None,
    bundle: str | None,
    opens: bool,
) -> None:
    """Explain a snapshot: one HTML file, or Markdown, JSON or text.

    HTML goes to a file named after the snapshot in the current folder, the other formats to stdout, unless -o says
    otherwise. Of a snapshot from stdin (-), HTML goes to stdout as well.
    """
    if bundle and (output or form):
        raise click.UsageError("--bundle is an output of its own; leave out -o and -f.", click.get_current_context())
    form = form or format_of(output or "")
    output = output or bundle or (default_output(snapshot, ".html") if form == "html" else STDOUT)
    _check("zip" if bundle else form, output, opens=opens, redact=redact, redact_key=redact_key)
    check_target(output, force=force, source=snapshot)
    check_target(str(redact_key) if redact_key else None, force=force, source=snapshot)
    findings = pipeline.find(
        snapshot,
        at=at,
        device=device,
        whatif=not no_whatif,
        whatif_seconds=whatif_seconds,
        redact=redact,
        redact_key=redact_key,
        force=force,
    )
    if bundle:
        from oomscope.commands.common.bundle import bundle as pack

        write_binary(pack(findings, title), bundle, force=force)
        return
    from oomscope.rendering.formats import render

    write(render(findings, form, title), output, force=force)
    if opens:
        webbrowser.open(Path(output).resolve().as_uri())


def _check(form: str, output: str, *, opens: bool, redact: bool, redact_key: Path | None) -> None:
    if opens and (form != "html" or output == STDOUT):
        raise click.UsageError("--open needs an HTML report in a file.", click.get_current_context())
    if redact_key and not redact:
        raise click.UsageError("--redact-key needs --redact.", click.get_current_context())
