"""For agents: the server of ``oomscope mcp`` and the text of ``oomscope agent-guide``."""
