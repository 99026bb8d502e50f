"""``oomscope triage``: many dumps, grouped by what went wrong."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from oomscope.commands.common import options
from oomscope.commands.common.many import read_all
from oomscope.commands.common.output import check_target, write_or_show

_FORMATS = ("text", "json")


@click.command("triage")
@options.of_many_snapshots(*_FORMATS)
def command(
    paths: tuple[str, ...],
    form: str | None,
    output: str | None,
    force: bool,
    redact: bool,
    redact_key: Path | None,
    **engine: Any,
) -> None:
    """Group many snapshots by what went wrong.

    Takes snapshots, patterns, folders, URLs (s3://, gs://, hf://, https://), and what oomscope digest wrote. The
    fingerprint of a mistake is the same in other runs, whatever the sizes, lines and folders.
    """
    form = options.form_of(form, output, _FORMATS)
    options.check_redaction(redact, redact_key)
    check_target(output, force=force)
    digests, bad = read_all(paths, redact=redact, redact_key=redact_key, force=force, **engine)
    from oomscope.analysis.compare.triage import triage
    from oomscope.rendering.many import triage_shown, triage_to_json

    groups = triage(digests)
    if form == "json":
        write_or_show(triage_to_json(groups, [asdict(one) for one in bad]), output, force=force)
    else:
        write_or_show(triage_shown(groups), output, force=force)
