"""``oomscope summary``: the verdict and the top tables in the terminal."""

from __future__ import annotations

import click

from oomscope.commands import options, pipeline
from oomscope.commands.output import write


@click.command("summary")
@options.snapshot_argument
@options.device_option
@click.option(
    "--at",
    type=options.Instant(),
    default="auto",
    show_default=True,
    help="The instant whose memory is attributed.",
)
@click.option(
    "--whatif/--no-whatif",
    default=None,
    help="Replay the trace under other settings as well.  [default: one, if the trace is short]",
)
@options.debug_option
def command(snapshot: str, device: int | None, at: str | int, whatif: bool | None) -> None:
    """Explain a snapshot in the terminal."""
    findings = pipeline.find(snapshot, at=at, device=device, whatif=whatif)
    from rich.console import Console

    from oomscope.rendering.terminal import WIDEST, render_text, summary

    console = Console(highlight=False, emoji=False, markup=False, legacy_windows=False)
    if not console.is_terminal:
        write(render_text(findings, width=min(console.width, WIDEST)), None, force=False)
        return
    console.width = min(console.width, WIDEST)
    console.print(summary(findings, width=console.width))
