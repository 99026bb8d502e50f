"""``oomscope whatif``: the recorded program under other settings of the allocator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from oomscope.commands.common import options, pipeline
from oomscope.commands.common.output import STDOUT, check_target, write
from oomscope.commands.common.progress import Progress
from oomscope.errors import OomscopeError, RequestError

if TYPE_CHECKING:
    from oomscope.allocator.limits import Limit
    from oomscope.analysis.ledger import Ledger
    from oomscope.analysis.study import DeviceStudy
    from oomscope.analysis.whatif import WhatIf
    from oomscope.model import Device, Snapshot

FORMATS = ("text", "md", "json")
LEDGER_STEPS = 120_000_000
"""Of replays, after which no other remedy is begun, where all are asked for."""

Value = TypeVar("Value")


def _refused_here(parse: Callable[[str], Value], param: click.Parameter, text: str) -> Value:
    """`text` as `parse` reads it; what it refuses is wrong usage, for it needs no file to be seen."""
    try:
        return parse(text)
    except (ValueError, OomscopeError) as error:
        said = str(error).rstrip(".")
        named = said if repr(text) in said else f"{text!r}: {said}"
        raise click.UsageError(f"{param.opts[0]} {named}", click.get_current_context()) from None


def _once(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> int | None:
    """The bytes that ``--limit`` or ``--gpu`` stands for."""
    if not texts:
        return None
    if len(texts) > 1:
        raise click.UsageError(f"{param.opts[0]} was given {len(texts)} times; give it once", ctx)
    from oomscope.analysis.whatif.gpus import capacity, size

    return _refused_here(size if param.name == "limit" else capacity, param, texts[0])


def _settings(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Settings as torch's latest release would read them."""
    for text in texts:
        from oomscope.allocator.config import AllocatorConfig

        if not text.strip():
            raise click.UsageError(f"{param.opts[0]} is empty; write it as NAME:VALUE", ctx)
        _refused_here(AllocatorConfig.parse, param, text)
    return texts


def _places(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG001
    """Places in the code; whether anything was allocated there, the snapshot tells."""
    for text in texts:
        from oomscope.analysis.whatif.changes import parse_scaling, parse_site

        _refused_here(parse_scaling if param.name == "scale" else parse_site, param, text)
    return texts


def _remedies(
    ctx: click.Context,  # noqa: ARG001
    param: click.Parameter,
    texts: tuple[str, ...],
) -> tuple[tuple[str, int | None], ...]:
    """Remedies with their values."""
    if not texts:
        return ()
    from oomscope.analysis.ledger import parse_remedy

    return tuple(_refused_here(parse_remedy, param, text) for text in texts)


@click.command("whatif")
@options.snapshot_argument
@click.option(
    "--setting",
    "settings",
    multiple=True,
    callback=_settings,
    metavar="NAME:VALUE[,…]",
    help="A setting as in PYTORCH_ALLOC_CONF (repeatable).  [default: those commonly advised]",
)
@click.option(
    "--limit",
    multiple=True,
    callback=_once,
    metavar="SIZE",
    help="Limit of the process, as set by set_per_process_memory_fraction: 16GiB, …",
)
@click.option(
    "--gpu",
    multiple=True,
    callback=_once,
    metavar="SIZE|NAME",
    help="Replay on another card: 24GiB, A100-40, H100, …",
)
@click.option(
    "--without",
    multiple=True,
    callback=_places,
    metavar="SITE",
    help="Omit what FILE:LINE allocates (an estimate).",
)
@click.option(
    "--scale",
    multiple=True,
    callback=_places,
    metavar="SITE=FACTOR",
    help="Scale what FILE:LINE, a phase (forward, backward, optimizer) or a category (activations, gradients, …)"
    " allocates (an estimate); activations=0.5 is roughly half the batch.",
)
@click.option(
    "--free-each-step",
    "free",
    multiple=True,
    callback=_places,
    metavar="SITE",
    help="Free what FILE:LINE allocates at the end of each step (an estimate).",
)
@click.option(
    "--remedy",
    "remedies",
    multiple=True,
    callback=_remedies,
    metavar="NAME[=VALUE]",
    help="What a remedy would make of the peak (repeatable): checkpoint, accumulate=4, autocast, zero1=8, …",
)
@click.option("--remedies", "all_remedies", is_flag=True, help="The same for every remedy that may help here.")
@options.device_option
@click.option(
    "--least-memory",
    type=click.Choice(("auto", "all", "none")),
    default="auto",
    show_default=True,
    help="For which rows to search for the minimum and to try other address orders; auto: the recorded setting,"
    " expandable segments, and each --setting.",
)
@click.option(
    "--orders",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="How many address orders to try where they matter.",
)
@click.option(
    "-f", "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Output format."
)
@options.output_options
@options.redact_options
@options.debug_option
def command(
    snapshot: str,
    settings: tuple[str, ...],
    limit: int | None,
    gpu: int | None,
    without: tuple[str, ...],
    scale: tuple[str, ...],
    free: tuple[str, ...],
    remedies: tuple[tuple[str, int | None], ...],
    all_remedies: bool,
    device: int | None,
    least_memory: str,
    orders: int,
    form: str,
    output: str | None,
    force: bool,
    redact: bool,
    redact_key: Path | None,
) -> None:
    """Replay a snapshot under other allocator settings.

    The recorded setting is replayed first and compared with the recording, address by address; other settings are
    answered only if all of them match.
    """
    output = output or STDOUT
    options.check_redaction(redact, redact_key)
    check_target(output, force=force, source=snapshot)
    with Progress() as progress:
        loaded = pipeline.read(snapshot, progress)
        if redact:
            progress.stage("redacting")
            loaded = pipeline.redacted(loaded, redact_key, force)
        progress.stage("history")
        from oomscope.analysis.study import study_device
        from oomscope.analysis.whatif import whatif_of

        study = study_device(loaded, _choose(loaded, device).index)
        asks_remedies = bool(remedies) or all_remedies
        answer = whatif_of(
            study,
            settings=settings or (() if asks_remedies else None),
            limit=limit,
            gpu=gpu,
            without=without,
            scale=tuple(map(by_slug, scale)),
            free=free,
            orders=orders,
            least_memory=least_memory,
            progress=progress.tell,
        )
        ledger = None
        if asks_remedies and answer.self_check.exact:
            ledger = _ledger(snapshot, study, None if all_remedies else remedies, bound(limit, gpu), progress)
    reason = answer.self_check.reason
    if reason is not None and not answer.self_check.addresses:
        from oomscope.wording import say

        raise RequestError(f"{snapshot}: {say(reason)}; call torch.cuda.memory._record_memory_history() before the run")
    _show(answer, ledger, form, output, force)


def _ledger(
    snapshot: str,
    study: DeviceStudy,
    remedies: tuple[tuple[str, int | None], ...] | None,
    limit: Limit | None,
    progress: Progress,
) -> Ledger:
    """The ledger of the `remedies`, None for all; refused where the run leaves nothing to do for any of them."""
    from oomscope.analysis.ledger import ledger_of

    ledger = ledger_of(study, remedies, progress.tell, limit=limit, budget=LEDGER_STEPS)
    if remedies is not None and not ledger.rows:
        raise RequestError(
            f"{snapshot}: {', '.join(ledger.skipped)}: nothing to do here, or the program does it already; "
            "--remedies lists what may help"
        )
    return ledger


def bound(limit: int | None, gpu: int | None) -> Limit | None:
    """The limit that remedies are held against; of a card what the CUDA context leaves. None: the recorded one."""
    if limit is None and gpu is None:
        return None
    from oomscope.allocator.limits import Limit
    from oomscope.analysis.plan.cards import OUTSIDE

    return Limit(cap=limit, capacity=None if gpu is None else max(gpu - OUTSIDE, 0), device_total=gpu)


def by_slug(scaling: str) -> str:
    """``activations=0.5`` as ``activation=0.5``: a category may be named as reports name it."""
    from oomscope.wording.labels import CATEGORY_LABELS

    name, _, factor = scaling.rpartition("=")
    slugs = {label: slug for slug, label in CATEGORY_LABELS.items()}
    return f"{slugs.get(name.strip().lower(), name)}={factor}"


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


def _show(answer: WhatIf, ledger: Ledger | None, form: str, output: str, force: bool) -> None:
    """Write `answer`, and the ledger behind it; as text it takes the room that the terminal has."""
    from rich.console import Console

    from oomscope.rendering.text import terminal
    from oomscope.rendering.whatif import shown, to_json, to_markdown, to_text

    console = Console(highlight=False, emoji=False, markup=False, legacy_windows=False)
    console.width = min(console.width, terminal.WIDEST)
    if form == "text" and output == STDOUT:
        if console.is_terminal:
            console.print(shown(answer, ledger))
        else:
            write(to_text(answer, console.width, ledger), output, force=force)
        return
    made = {"text": to_text(answer, ledger=ledger), "md": to_markdown(answer, ledger), "json": to_json(answer, ledger)}
    write(made[form], output, force=force)
