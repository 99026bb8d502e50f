"""``oomscope plan``: what fits, from one to three recorded steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from oomscope.commands.common import options, pipeline
from oomscope.commands.common.output import STDOUT, check_target, write
from oomscope.commands.common.progress import Progress
from oomscope.errors import OomscopeError, RequestError

if TYPE_CHECKING:
    from oomscope.analysis.plan import Plan
    from oomscope.analysis.study import DeviceStudy
    from oomscope.model import Snapshot

FORMATS = ("text", "md", "json", "svg")


def _shape(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> list[dict[str, int]]:
    """Shapes, one each; ``--for`` takes ranges as well."""
    from oomscope.analysis.plan import parse_shape, parse_shapes

    found: list[dict[str, int]] = []
    for text in texts:
        try:
            found += parse_shapes(text) if param.name == "wanted" else [parse_shape(text)]
        except OomscopeError as error:
            raise click.UsageError(f"{param.opts[0]} {str(error).rstrip('.')}", ctx) from None
    return found


def _cards(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    from oomscope.analysis.whatif.gpus import capacity

    for text in texts:
        try:
            capacity(text)
        except OomscopeError as error:
            raise click.UsageError(f"{param.opts[0]} {str(error).rstrip('.')}", ctx) from None
    return texts


def _limits(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    from oomscope.analysis.whatif.gpus import size

    try:
        return tuple(map(size, texts))
    except (OomscopeError, ValueError) as error:
        raise click.UsageError(f"{param.opts[0]} {str(error).rstrip('.')}", ctx) from None


@click.command("plan")
@click.argument("snapshots", metavar="SNAPSHOT...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--at",
    multiple=True,
    callback=_shape,
    metavar="NAME=N[,…]",
    help="The shape that a snapshot was recorded at, one for each file in their order: batch=8,seq=512."
    "  [default: what recording.step(batch=8, seq=512) noted]",
)
@click.option(
    "--for",
    "wanted",
    multiple=True,
    callback=_shape,
    metavar="NAME=N[..M[..STEP]][,…]",
    help="A shape to predict (repeatable): batch=16,seq=1024, or a range, batch=8..64, or one in steps of 8,"
    " batch=8..64..8. What it does not name stays as recorded.",
)
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    callback=_cards,
    metavar="SIZE|NAME",
    help="A card (repeatable): 24GiB, A100-40, H100, …; what fits, and the largest value of each parameter that does.",
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    callback=_limits,
    metavar="SIZE",
    help="A cap of the process (repeatable), as set by set_per_process_memory_fraction: 16GiB, …"
    "  [default: where no card is named, the recorded one]",
)
@click.option(
    "--setting",
    "settings",
    multiple=True,
    metavar="NAME:VALUE[,…]",
    help="A setting as in PYTORCH_ALLOC_CONF (repeatable).  [default: as recorded]",
)
@options.device_option
@click.option(
    "-f", "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Output format."
)
@options.output_options
@options.redact_options
@options.debug_option
def command(
    snapshots: tuple[str, ...],
    at: list[dict[str, int]],
    wanted: list[dict[str, int]],
    gpus: tuple[str, ...],
    limits: tuple[int, ...],
    settings: tuple[str, ...],
    device: int | None,
    form: str,
    output: str | None,
    force: bool,
    redact: bool,
    redact_key: Path | None,
) -> None:
    """Predict peak memory at other shapes, and what fits which card.

    Takes one to three SNAPSHOTs of the same program, recorded at known shapes: one for each parameter that is to
    change, and one more. Every allocation is followed from recording to recording, its size is scaled, and the scaled
    trace is replayed.
    """
    output = output or STDOUT
    options.check_redaction(redact, redact_key)
    for one in snapshots:
        check_target(output, force=force, source=one)
    if not wanted and not gpus and not limits:
        raise click.UsageError("say what is asked for: a shape with --for, a card with --gpu or a cap with --limit")
    if at and len(at) != len(snapshots):
        raise click.UsageError(f"{len(snapshots)} files and {len(at)} --at were given; give one --at for each file")
    with Progress() as progress:
        studies = [(Path(one).name, _study(one, device, progress, redact, redact_key, force)) for one in snapshots]
        from oomscope.analysis.plan import plan_of

        answer = plan_of(
            studies, at=at, wanted=wanted, gpus=gpus, limits=limits, settings=settings, progress=progress.tell
        )
    _show(answer, form, output, force)


def _study(
    snapshot: str, device: int | None, progress: Progress, redact: bool, key: Path | None, force: bool
) -> DeviceStudy:
    from oomscope.analysis.study import study_device

    loaded = pipeline.read(snapshot, progress)
    if redact:
        progress.stage("redacting")
        loaded = pipeline.redacted(loaded, key, force)
    progress.stage("history")
    return study_device(loaded, _device(snapshot, loaded) if device is None else device)


def _device(name: str, snapshot: Snapshot) -> int:
    """The device with the longest trace."""
    if not snapshot.devices:
        raise RequestError(f"{name}: the snapshot holds no device, so there is nothing to predict from")
    return max(snapshot.devices, key=lambda one: len(one.trace)).index


def _show(answer: Plan, form: str, output: str, force: bool) -> None:
    from oomscope.rendering.plan import to_json, to_markdown, to_text
    from oomscope.rendering.text import terminal

    if form == "svg":
        from oomscope.rendering.plan_figure import to_svg

        write(to_svg(answer), output, force=force)
        return
    if form == "text":
        width = min(click.get_current_context().terminal_width or _columns(), terminal.WIDEST)
        write(to_text(answer, width), output, force=force)
        return
    write({"md": to_markdown, "json": to_json}[form](answer), output, force=force)


def _columns() -> int:
    from rich.console import Console

    return Console(legacy_windows=False).width
