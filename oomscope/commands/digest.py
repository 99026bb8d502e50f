"""``oomscope digest``: a few kB of a snapshot, to be put together with others later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from oomscope.commands.common import options
from oomscope.commands.common.many import read_all
from oomscope.commands.common.output import check_target, write


@click.command("digest")
@click.argument("paths", nargs=-1, required=True, metavar="SNAPSHOT...")
@click.option(
    "-f", "--format", "form", type=click.Choice(("json",)), default="json", expose_value=False, help="There is one."
)
@options.output_options
@options.redact_options
@options.engine_options
@options.debug_option
def command(
    paths: tuple[str, ...], output: str | None, force: bool, redact: bool, redact_key: Path | None, **engine: Any
) -> None:
    """Write what ranks and triage need of snapshots, as JSON of a few kB each.

    Digests can be digested again: however they are put together, the result is the same.
    """
    options.check_redaction(redact, redact_key)
    check_target(output, force=force)
    digests, _ = read_all(paths, redact=redact, redact_key=redact_key, force=force, **engine)
    from oomscope.rendering.many import digests_to_json

    write(digests_to_json(digests), output, force=force)
