"""Findings as text: HTML, Markdown, JSON and the terminal. A renderer returns text; a command owns paths.

The names below load when they are first used, so that importing this package brings in neither matplotlib nor jinja2.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oomscope.rendering.html.page import render_html
    from oomscope.rendering.write import write_report, write_text_atomically

__all__ = ["render_html", "write_report", "write_text_atomically"]

_HOME = {
    "render_html": "oomscope.rendering.html.page",
    "write_report": "oomscope.rendering.write",
    "write_text_atomically": "oomscope.rendering.write",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'oomscope.rendering' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
