"""``oomscope whatif``: the recorded program under other settings of the allocator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from oomscope.commands import options, pipeline
from oomscope.commands.output import STDOUT, check_target, write
from oomscope.commands.progress import Progress
from oomscope.errors import RequestError

if TYPE_CHECKING:
    from oomscope.analysis.whatif import WhatIf
    from oomscope.model import Device, Snapshot

FORMATS = ("text", "md", "json")


@click.command("whatif")
@options.snapshot_argument
@click.option(
    "--setting",
    "settings",
    multiple=True,
    metavar="NAME:VALUE[,…]",
    help="A setting as in PYTORCH_ALLOC_CONF; may be repeated. Without: those worth trying.",
)
@click.option(
    "--limit", metavar="BYTES", help="What the process may reserve, as set_per_process_memory_fraction bounds it."
)
@click.option("--gpu", metavar="SIZE|NAME", help="A physical card instead: 24GiB, A100-40, H100, …")
@click.option("--without", multiple=True, metavar="SITE", help="Leave out what FILE:LINE allocates (an estimate).")
@click.option(
    "--scale",
    multiple=True,
    metavar="SITE=FACTOR",
    help="Scale what FILE:LINE, or a phase (forward, backward, optimizer), allocates (an estimate).",
)
@click.option(
    "--free-each-step", "free", multiple=True, metavar="SITE", help="Give back at the end of each step (an estimate)."
)
@options.device_option
@click.option(
    "--least-memory",
    type=click.Choice(("auto", "all", "none")),
    default="auto",
    show_default=True,
    help="For which rows to search the least memory and to try other orders of addresses; auto: the recorded setting,"
    " expandable segments, and each --setting.",
)
@click.option(
    "--orders",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Orders of addresses to try where they matter.",
)
@click.option(
    "-f", "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="What to write."
)
@options.output_options
@options.debug_option
def command(
    snapshot: str,
    settings: tuple[str, ...],
    limit: str | None,
    gpu: str | None,
    without: tuple[str, ...],
    scale: tuple[str, ...],
    free: tuple[str, ...],
    device: int | None,
    least_memory: str,
    orders: int,
    form: str,
    output: str | None,
    force: bool,
) -> None:
    """Replay a snapshot's trace under other settings of the allocator.

    The recorded setting is replayed first and compared with the recording, address by address; other settings are
    answered only where it agrees.
    """
    output = output or STDOUT
    bound = _size(limit)
    check_target(output, force=force, source=snapshot)
    with Progress() as progress:
        loaded = pipeline.read(snapshot, progress)
        progress.stage("Replaying")
        from oomscope.analysis.phases import phase_of
        from oomscope.analysis.records import PHASES
        from oomscope.analysis.steps import find_steps
        from oomscope.analysis.whatif import whatif
        from oomscope.history import device_history, recorded_config

        chosen = _choose(loaded, device)
        history = device_history(chosen, recorded_config(loaded))
        phase = phase_of(loaded, history)
        answer = whatif(
            loaded,
            chosen.index,
            settings=settings or None,
            limit=bound,
            gpu=gpu,
            without=without,
            scale=scale,
            free=free,
            orders=orders,
            least_memory=least_memory,
            steps=find_steps(loaded, history, phase).boundaries,
            phases={name: phase == number for number, name in enumerate(PHASES)},
            history=history,
        )
    if not answer.self_check.addresses:
        raise RequestError(
            f"{snapshot}: {answer.self_check.reason}; call torch.cuda.memory._record_memory_history() before the run"
        )
    write(_render(answer, form), output, force=force)


def _size(text: str | None) -> int | None:
    from oomscope.units import parse_bytes

    try:
        return None if text is None else parse_bytes(text)
    except ValueError as error:
        raise click.UsageError(f"--limit: {error}.", click.get_current_context()) from None


def _choose(snapshot: Snapshot, index: int | None) -> Device:
    """The device asked for; else the one that ran out of memory, else the one with the longest trace."""
    from oomscope.model import Action

    if index is not None:
        for device in snapshot.devices:
            if device.index == index:
                return device
        known = ", ".join(str(device.index) for device in snapshot.devices) or "none"
        raise RequestError(f"the snapshot holds nothing about device {index}; it has {known}")
    if not snapshot.devices:
        raise RequestError("the snapshot holds no device, so there is nothing to replay")
    return max(snapshot.devices, key=lambda one: (len(one.trace.entries(Action.OOM)) > 0, len(one.trace)))


def _render(answer: WhatIf, form: str) -> str:
    from oomscope.rendering.whatif import to_json, to_markdown, to_text

    return {"text": to_text, "md": to_markdown, "json": to_json}[form](answer)
