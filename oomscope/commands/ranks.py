"""``oomscope ranks``: the snapshots of all ranks of a job side by side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from oomscope.commands.common import options
from oomscope.commands.common.many import read_all
from oomscope.commands.common.output import check_target, write_or_show


@click.command("ranks")
@options.of_many_snapshots
def command(
    paths: tuple[str, ...],
    form: str,
    output: str | None,
    force: bool,
    redact: bool,
    redact_key: Path | None,
    **engine: Any,
) -> None:
    """Compare the ranks of a job: who ran out first, who holds more, and where.

    Takes snapshots, patterns, folders, URLs (s3://, gs://, hf://, https://), and what oomscope digest wrote. Ranks are
    taken from the recording, else from file names such as oom.rank3.pickle.
    """
    options.check_redaction(redact, redact_key)
    check_target(output, force=force)
    digests, bad = read_all(paths, redact=redact, redact_key=redact_key, force=force, **engine)
    from oomscope.analysis.compare.ranks import compare_ranks
    from oomscope.rendering.many import ranks_shown, ranks_to_json

    found = compare_ranks(digests)
    if form == "json":
        write_or_show(ranks_to_json(found, [asdict(one) for one in bad]), output, force=force)
    else:
        write_or_show(ranks_shown(found), output, force=force)
