"""``oomscope schema``: what a program may rely on in the JSON that oomscope writes."""

from __future__ import annotations

import json

import click

from oomscope.commands.common import options
from oomscope.commands.common.output import STDOUT, check_target, write


@click.command("schema")
@click.argument("name", required=False)
@options.output_options
@options.debug_option
def command(name: str | None, output: str | None, force: bool) -> None:
    """List the JSON Schemas of oomscope's documents, or print one.

    NAME is that of the command whose --format json it describes, such as report or plan, or baseline or digest.
    """
    from oomscope.rendering.schemas import schema_names, schema_text

    check_target(output, force=force)
    if name is not None:
        write(schema_text(name), output, force=force)
        return
    if output not in (None, STDOUT):
        raise click.UsageError("-o needs the NAME of a schema.", click.get_current_context())
    width = max(map(len, schema_names()))
    for one in schema_names():
        schema = json.loads(schema_text(one))
        version = schema["properties"]["schema_version"]["const"]
        click.echo(f"{one:<{width}}  version {version}  {schema['description'].partition('. ')[0].rstrip('.')}.")
    click.echo("\nPrint one with: oomscope schema NAME")
