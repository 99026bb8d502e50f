"""The server that offers the tools over stdin and stdout, with the official SDK of the Model Context Protocol."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

from oomscope.commands.agents.guide import INSTRUCTIONS
from oomscope.commands.agents.opened import OpenedSnapshots
from oomscope.commands.agents.tools import Tools
from oomscope.errors import OomscopeError
from oomscope.version import __version__

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer


def make_server(opened: OpenedSnapshots) -> MCPServer[object]:
    """A server with every tool on the files that `opened` may open.

    Raises:
        ImportError: the SDK (extra ``[mcp]``) is not installed.
    """
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ToolAnnotations

    server: MCPServer[object] = MCPServer("oomscope", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR")
    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    for tool in Tools(opened).all:
        server.add_tool(
            _told(tool), description=inspect.cleandoc(tool.__doc__ or ""), annotations=hints, structured_output=False
        )
    return server


def _told(tool: Callable[..., str]) -> Callable[..., str]:
    """`tool`, whose refusals reach the agent as one line."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def told(*arguments: object, **named: object) -> str:
        try:
            return tool(*arguments, **named)
        except OomscopeError as error:
            raise ToolError(" ".join(str(error).split())) from error
        except (OSError, ValueError) as error:
            raise ToolError(f"the request cannot be served ({error}); check its arguments") from error
        except MemoryError:
            raise ToolError("not enough memory for this snapshot; try a machine with more") from None

    return told
