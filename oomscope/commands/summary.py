"""``oomscope summary``: the verdict and the top tables in the terminal."""

from __future__ import annotations

import click

from oomscope.commands.common import options, pipeline
from oomscope.commands.common.output import write

_NOT_REPLAYED = "Other settings were not replayed because the trace is long; use --whatif to replay them."


@click.command("summary")
@options.snapshot_argument
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
@options.debug_option
def command(snapshot: str, device: int | None, at: str | int, whatif: bool | None) -> None:
    """Explain a snapshot in the terminal."""
    findings = pipeline.find(snapshot, at=at, device=device, whatif=whatif)
    from rich.console import Console

    from oomscope.rendering.text.terminal import WIDEST, render_text, summary

    console = Console(highlight=False, emoji=False, markup=False, legacy_windows=False)
    left_out = whatif is None and findings.snapshot.entries > pipeline.QUICK_ENTRIES
    if not console.is_terminal:
        text = render_text(findings, width=min(console.width, WIDEST))
        write(f"{text}{_NOT_REPLAYED}\n" if left_out else text, None, force=False)
        return
    console.width = min(console.width, WIDEST)
    console.print(summary(findings, width=console.width))
    if left_out:
        console.print(_NOT_REPLAYED)
