"""``oomscope summary``: the verdict, the fix and who holds the memory, in one screen of the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from oomscope.commands.common import options, pipeline
from oomscope.commands.common.output import write

if TYPE_CHECKING:
    from rich.console import RenderableType

    from oomscope.analysis import Findings
    from oomscope.messages import Log
    from oomscope.rendering.common.sources import Sources


@click.command("summary")
@options.snapshot_argument
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Output format; json has the verdict, the fixes and who holds the memory, in a few kB.",
)
@click.option("--full", is_flag=True, help="Show every table instead of one screen.")
@options.device_option
@click.option(
    "--at",
    type=options.Instant(),
    default="auto",
    show_default=True,
    help="The instant at which memory is attributed.",
)
@options.window_option
@click.option(
    "--whatif/--no-whatif",
    default=None,
    help="Replay the trace under other settings.  [default: only for the verdict, if the trace is short]",
)
@click.option(
    "--log",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Say as well what the messages about memory in this log prove, such as a serving engine's own refusal.",
)
@options.redact_options
@options.source_options
@options.debug_option
def command(
    snapshot: str,
    form: str,
    full: bool,
    device: int | None,
    at: str | int,
    window: str | None,
    whatif: bool | None,
    log: Path | None,
    redact: bool,
    redact_key: Path | None,
    source: Path | None,
    no_source: bool,
) -> None:
    """Explain a snapshot in one screen of the terminal."""
    options.check_redaction(redact, redact_key)
    options.check_source(source, no_source=no_source, redact=redact)
    if log and redact:
        raise click.UsageError("--log cannot be redacted.", click.get_current_context())
    findings = pipeline.find(
        snapshot,
        at=at,
        device=device,
        window=window,
        whatif=whatif,
        redact=redact,
        redact_key=redact_key,
        no_source=no_source,
    )
    if form == "json":
        from oomscope.rendering.answers.verdict import summary_to_json

        write(summary_to_json(findings, _told(log)), None, force=False)
        return
    from rich.console import Console

    from oomscope.rendering.common.sources import Sources
    from oomscope.rendering.text.terminal import WIDEST, plain

    replayed = whatif or (whatif is None and findings.snapshot.entries <= pipeline.QUICK_ENTRIES)
    console = Console(highlight=False, emoji=False, markup=False, legacy_windows=False)
    console.width = min(console.width, WIDEST)
    sources = Sources(findings.snapshot, source)
    shown = _shown(findings, console.width, sources, full=full, replayed=replayed)
    if console.is_terminal:
        console.print(shown)
    else:
        write(plain(shown, console.width), None, force=False)
    if (told := _told(log)) is not None:
        from oomscope.rendering.explain import to_text

        write(f"\n{to_text(told, console.width)}", None, force=False)


def _told(log: Path | None) -> Log | None:
    """The messages in the file `log`."""
    if log is None:
        return None
    from oomscope.messages import read_log

    with log.open("rb") as file:
        return read_log(file)


def _shown(findings: Findings, width: int, sources: Sources, *, full: bool, replayed: bool) -> RenderableType:
    if full:
        from oomscope.rendering.text.terminal import summary

        return summary(findings, width=width, sources=sources)
    from oomscope.rendering.text.brief import answered, brief

    if findings.whatif:
        return answered(findings, width=width, sources=sources)
    return brief(findings, width=width, replayed=replayed, sources=sources)
