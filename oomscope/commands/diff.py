"""``oomscope diff``: what differs between two snapshots."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from oomscope.commands.common import options, pipeline
from oomscope.commands.common.output import STDOUT, check_target, stem, write, write_or_show
from oomscope.commands.common.progress import Progress
from oomscope.rendering.formats import FORMATS, format_of

if TYPE_CHECKING:
    from oomscope.analysis.compare.records import Diff
    from oomscope.model import Snapshot


@click.command("diff")
@click.argument("before", type=click.Path(allow_dash=True))
@click.argument("after", type=click.Path(allow_dash=True))
@click.option(
    "--at",
    type=click.Choice(("auto", "peak", "oom", "end")),
    default="auto",
    show_default=True,
    help="The instant to compare; auto: the OOM where both have one, else the peak.",
)
@options.device_option
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Output format.  [default: by the suffix of -o, else text]",
)
@options.output_options
@click.option("--open", "opens", is_flag=True, help="Open the HTML page in the browser.")
@options.redact_options
@options.debug_option
def command(
    before: str,
    after: str,
    at: str,
    device: int | None,
    form: str | None,
    output: str | None,
    force: bool,
    opens: bool,
    redact: bool,
    redact_key: Path | None,
) -> None:
    """Show what changed from one snapshot to another.

    Lines of code are recognised when they move, when files or functions are renamed, and when the two were recorded
    under other folders or on other ranks. HTML goes to a file in the current folder, the other formats to stdout.
    """
    form = form or (format_of(output) if output and output != STDOUT else "html" if opens else "text")
    options.check_redaction(redact, redact_key)
    if before == after == STDOUT:
        raise click.UsageError("Only one of the two can be standard input.", click.get_current_context())
    output = output or (f"{stem(before)}.to.{stem(after)}.html" if form == "html" else STDOUT)
    if opens and (form != "html" or output == STDOUT):
        raise click.UsageError("--open needs an HTML page in a file.", click.get_current_context())
    for source in (before, after):
        check_target(output, force=force, source=source)
    check_target(str(redact_key) if redact_key else None, force=force)
    with Progress() as progress:
        snapshots = _read(before, after, redact, redact_key, force, progress)
        progress.stage("findings")
        from oomscope.analysis.compare.diff import compare

        found = compare(*snapshots, at=at, device=device, files=_called(before, after, redact), progress=progress.tell)
    _show(found, form, output, force)
    if opens:
        webbrowser.open(Path(output).resolve().as_uri())


def _read(
    before: str, after: str, redact: bool, redact_key: Path | None, force: bool, progress: Progress
) -> tuple[Snapshot, Snapshot]:
    first = pipeline.read(before, progress)
    second = pipeline.read(after, progress)
    return pipeline.both_redacted(first, second, redact_key, force) if redact else (first, second)


def _called(before: str, after: str, redact: bool) -> tuple[str, str]:
    """What the two are called: their names, with folders where they would be the same."""
    if redact:
        return "before", "after"
    names = Path(before).name, Path(after).name
    return (before, after) if names[0] == names[1] else names


def _show(found: Diff, form: str, output: str, force: bool) -> None:
    """Write `found`; as text it takes the room that the terminal has."""
    if form == "html":
        from oomscope.rendering.html.diff_page import diff_to_html

        write(diff_to_html(found), output, force=force)
        return
    from oomscope.rendering.diff import diff_shown, diff_to_json, diff_to_markdown

    if form == "text":
        write_or_show(diff_shown(found), output, force=force)
        return
    write({"md": diff_to_markdown, "json": diff_to_json}[form](found), output, force=force)
