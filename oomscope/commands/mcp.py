"""``oomscope mcp``: the questions that can be asked of a snapshot, as tools for agents."""

from __future__ import annotations

from pathlib import Path

import click

from oomscope.commands.common import options
from oomscope.errors import RequestError


@click.command("mcp")
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Read only files in this folder (repeatable).  [default: any]",
)
@click.option("--redact", is_flag=True, help="Replace names of users, hosts, paths and your own modules with aliases.")
@options.debug_option
def command(roots: tuple[Path, ...], redact: bool) -> None:
    """Serve tools for agents over standard input and output (Model Context Protocol).

    Tools: open, verdict, holders, sites, at_instant, whatif, remedies, plan, diff, explain. Each takes the path of a
    snapshot and answers in at most 4 kB of JSON, more with max_bytes. Needs the extra: pip install 'oomscope[mcp]'.
    """
    from oomscope.commands.agents.opened import OpenedSnapshots
    from oomscope.commands.agents.server import make_server

    try:
        server = make_server(OpenedSnapshots(roots, redact=redact))
    except ImportError as error:
        raise RequestError(f"{error.name or 'mcp'} is not installed; run: pip install 'oomscope[mcp]'") from error
    server.run("stdio")
