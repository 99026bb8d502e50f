"""``oomscope check``: a snapshot against a budget, for CI."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from oomscope.analysis.records import Location
from oomscope.budgets import Limits, make_budget
from oomscope.commands.common import options, pipeline
from oomscope.commands.common.output import check_target, write, write_or_show
from oomscope.errors import RequestError

if TYPE_CHECKING:
    from oomscope.analysis.compare.budget import Budget, CheckResult
    from oomscope.analysis.compare.figures import Figures

FORMATS = ("text", "json", "junit", "github")
BROKEN = 3
"""The exit code of a broken budget."""


@click.command("check")
@options.snapshot_argument
@click.option("--max-peak", metavar="BYTES", help="Most bytes allocated at once: 20GiB.")
@click.option("--max-reserved", metavar="BYTES", help="Most bytes reserved at once.")
@click.option(
    "--max-fragmentation",
    metavar="BYTES|SHARE%",
    help="Most free bytes beside live blocks at the peak; a share is one of reserved bytes.",
)
@click.option("--max-growth", metavar="BYTES/pass", help="Most bytes that a pass of the loop leaves behind.")
@click.option(
    "--max-site", multiple=True, metavar="SITE=BYTES", help="Most bytes of FILE:LINE at the peak (repeatable)."
)
@click.option(
    "--max-category", multiple=True, metavar="NAME=BYTES", help="Most bytes of a category at the peak (repeatable)."
)
@click.option(
    "--budget",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="TOML with the same limits in a table [budget]; options go before it.",
)
@click.option("--baseline", metavar="FILE", help="Compare with a baseline written by --save-baseline.")
@click.option("--tolerance", metavar="SHARE", help="By how much a baseline may be exceeded.  [default: 2%]")
@click.option(
    "--save-baseline", type=click.Path(dir_okay=False), metavar="FILE", help="Write the figures, to be committed."
)
@options.device_option
@click.option(
    "-f", "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Output format."
)
@options.output_options
@options.redact_options
@options.debug_option
def command(
    snapshot: str,
    max_peak: str | None,
    max_reserved: str | None,
    max_fragmentation: str | None,
    max_growth: str | None,
    max_site: tuple[str, ...],
    max_category: tuple[str, ...],
    budget: Path | None,
    baseline: str | None,
    tolerance: str | None,
    save_baseline: str | None,
    device: int | None,
    form: str,
    output: str | None,
    force: bool,
    redact: bool,
    redact_key: Path | None,
) -> int:
    """Check a snapshot against a budget.

    Exits with 3 where a budget is broken, and names the lines that broke it; with 1 where the recording cannot tell.
    """
    limits = Limits(max_peak, max_reserved, max_fragmentation, max_growth, max_site, max_category, baseline, tolerance)
    asked = _budget(limits, budget)
    if not _asks(asked) and save_baseline is None:
        raise click.UsageError(
            "There is nothing to check; give a limit, --budget or --baseline.", click.get_current_context()
        )
    options.check_redaction(redact, redact_key)
    check_target(save_baseline, force=force, source=snapshot)
    check_target(output, force=force, source=snapshot)
    found = _measure(snapshot, device)
    if save_baseline is not None:
        _save(found, save_baseline, force)
        if not _asks(asked):
            return 0
    from oomscope.analysis.compare.budget import check

    result = check(found, asked)
    if redact:
        result = _redacted(result, redact_key, force)
    _show(result, "snapshot" if redact else Path(snapshot).name, form, output, force)
    if result.broken:
        return BROKEN
    if result.unknown:
        _refuse(result)
    return 0


def _budget(limits: Limits, file: Path | None) -> Budget:
    try:
        return make_budget(limits, file)
    except ValueError as error:
        raise click.UsageError(str(error), click.get_current_context()) from None


def _asks(budget: Budget) -> bool:
    from oomscope.analysis.compare.budget import Budget

    return replace(budget, tolerance=0.0) != Budget(tolerance=0.0)


def _measure(snapshot: str, device: int | None) -> Figures:
    from oomscope.analysis.compare.figures import figures

    return figures(pipeline.find(snapshot, at="peak", device=device, whatif=False))


def _save(found: Figures, path: str, force: bool) -> None:
    from oomscope.analysis.compare.baseline import as_baseline
    from oomscope.rendering.json_plain import dumped
    from oomscope.version import __version__

    if found.peak_allocated is None:
        raise RequestError("the recording has no timeline, so it can be no baseline; record the run with its history")
    document = {**as_baseline(found), "version": __version__}
    write(dumped(document) + "\n", path, force=force)


def _redacted(result: CheckResult, key: Path | None, force: bool) -> CheckResult:
    """`result` with aliases for the names in it; the budget itself is asked of the real ones."""
    from oomscope.redaction.aliases import Aliases

    aliases = Aliases()

    def alias(where: Location | None) -> Location | None:
        return None if where is None else Location(*aliases.code(where.file, where.function, where.line))

    checked = tuple(
        replace(
            one,
            name="site" if one.budget == "site" and one.name else one.name,
            by=tuple(replace(by, site=alias(by.site), caller=alias(by.caller)) for by in one.by),
        )
        for one in result.checked
    )
    pipeline.write_key(aliases.key(), key, force)
    return replace(result, checked=checked)


def _show(result: CheckResult, file: str, form: str, output: str | None, force: bool) -> None:
    from oomscope.rendering.check import check_shown, check_to_github, check_to_json, check_to_junit

    if form == "text":
        write_or_show(check_shown(result, file), output, force=force)
        return
    forms = {"json": check_to_json, "junit": check_to_junit, "github": check_to_github}
    write(forms[form](result, file), output, force=force)


def _refuse(result: CheckResult) -> None:
    """Say on stderr that a figure is not known: what cannot be checked must not pass."""
    from oomscope.rendering.check import shorten_for
    from oomscope.wording.check import unknown_text

    raise RequestError(unknown_text(result.unknown[0], shorten_for(result)))
