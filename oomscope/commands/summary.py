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


@click.command("summary")
@options.snapshot_argument
@click.option("--full", is_flag=True, help="Show every table instead of one screen.")
@options.device_option
@click.option(
    "--at",
    type=options.Instant(),
    default="auto",
    show_default=True,
    help="The instant at which memory is attributed.",
)
@click.option(
    "--whatif/--no-whatif",
    default=None,
    help="Replay the trace under other settings.  [default: only for the verdict, if the trace is short]",
)
@options.redact_options
@options.debug_option
def command(
    snapshot: str,
    full: bool,
    device: int | None,
    at: str | int,
    whatif: bool | None,
    redact: bool,
    redact_key: Path | None,
) -> None:
    """Explain a snapshot in one screen of the terminal."""
    options.check_redaction(redact, redact_key)
    findings = pipeline.find(snapshot, at=at, device=device, whatif=whatif, redact=redact, redact_key=redact_key)
    from rich.console import Console

    from oomscope.rendering.text.terminal import WIDEST, plain

    replayed = whatif or (whatif is None and findings.snapshot.entries <= pipeline.QUICK_ENTRIES)
    console = Console(highlight=False, emoji=False, markup=False, legacy_windows=False)
    console.width = min(console.width, WIDEST)
    shown = _shown(findings, console.width, full=full, replayed=replayed)
    if console.is_terminal:
        console.print(shown)
    else:
        write(plain(shown, console.width), None, force=False)


def _shown(findings: Findings, width: int, *, full: bool, replayed: bool) -> RenderableType:
    if full:
        from oomscope.rendering.text.terminal import summary

        return summary(findings, width=width)
    from oomscope.rendering.text.brief import answered, brief

    if findings.whatif:
        return answered(findings, width=width)
    return brief(findings, width=width, replayed=replayed)
