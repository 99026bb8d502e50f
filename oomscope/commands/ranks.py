"""``oomscope ranks``: the snapshots of all ranks of a job side by side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from oomscope.commands.common import options
from oomscope.commands.common.many import read_all
from oomscope.commands.common.output import check_target, write, write_or_show

_FORMATS = ("text", "json", "html")


@click.command("ranks")
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
    """Compare the ranks of a job: who ran out first, who holds more, and where.

    Takes snapshots, patterns, folders, URLs (s3://, gs://, hf://, https://), and what oomscope digest wrote. Ranks are
    taken from the recording, else from file names such as oom.rank3.pickle. HTML goes to ranks.html in the current
    folder, the other formats to stdout.
    """
    form = options.form_of(form, output, _FORMATS)
    output = output or ("ranks.html" if form == "html" else None)
    options.check_redaction(redact, redact_key)
    check_target(output, force=force)
    digests, bad = read_all(paths, redact=redact, redact_key=redact_key, force=force, **engine)
    from oomscope.analysis.compare.ranks import compare_ranks
    from oomscope.rendering.many import ranks_shown, ranks_to_json

    found, unread = compare_ranks(digests), [asdict(one) for one in bad]
    if form == "html":
        from oomscope.rendering.html.ranks_page import ranks_to_html

        write(ranks_to_html(found, unread), output, force=force)
    else:
        write_or_show(ranks_to_json(found, unread) if form == "json" else ranks_shown(found), output, force=force)
