"""``oomscope agent-guide``: what an agent should know to fix an out-of-memory error."""

from __future__ import annotations

import click

from oomscope.commands.common import options
from oomscope.commands.common.output import write


@click.command("agent-guide")
@options.debug_option
def command() -> None:
    """Print a short guide for agents, as Markdown with the head of a skill.

    Saved as SKILL.md, or pasted into an agent's instructions, it tells how to find and fix an out-of-memory error.
    """
    from oomscope.commands.agents.guide import guide

    write(guide(), None, force=False)
