"""Figures of matplotlib as inline SVG that follows the page.

The page's Content-Security-Policy allows no ``style`` attributes, and its colours change between light, dark and
print. So every style that matplotlib writes becomes a class, shared by all figures of the page, and every colour of
the palette becomes its CSS variable.
"""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from html import escape
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from oomscope.rendering.html import palette

FONT_SIZE = 9.5
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    # Labels are never formulas, whatever signs they hold.
    "text.parse_math": False,
    "font.size": FONT_SIZE,
    "axes.unicode_minus": False,
    "path.simplify": True,
    "path.simplify_threshold": 0.2,
}
_VARIABLES = {colour.light: f"var(--{colour.variable})" for colour in palette.ALL}
_STYLE = re.compile(r'\sstyle="([^"]*)"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_GEOMETRY = re.compile(r'(\s(?:x|y|width|height|transform)=")([^"]*)"')
_PATH = re.compile(r'(\sd=")([^"]*)"')
_POLYLINE = re.compile(r"M\s*(-?[\d.]+)\s+(-?[\d.]+)\s+((?:L\s*-?[\d.]+\s+-?[\d.]+\s*)*)(z?)\s*", re.DOTALL)
_GROUP_ID = re.compile(r'<g id="[^"]*"')
_FONT = re.compile(r"(?:[a-z]+\s+)*([\d.]+)px\b.*")


class StyleSheet:
    """The classes that the figures of one page share."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}

    def class_of(self, style: str) -> str:
        """The class for the declarations in a ``style`` attribute."""
        declarations = ";".join(_declarations(style))
        return self._classes.setdefault(declarations, f"m{len(self._classes)}")

    def css(self) -> str:
        """The rules of all classes handed out."""
        return "".join(f".{name}{{{declarations}}}" for declarations, name in self._classes.items())


def _declarations(style: str) -> list[str]:
    found = []
    for declaration in style.split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key == "font":
            key, value = "font-size", _FONT.sub(r"\1px", value)
        elif key in ("font-family", "-inkscape-stroke"):
            continue
        if key:
            found.append(f"{key}:{_VARIABLES.get(value.lower(), value)}")
    return found


LONGEST_NAME = 12
"""Characters of a name in a figure, such as a step's: longer ones would run into each other."""


def plain_name(name: str) -> str:
    """`name` where it is fit for a figure; empty where it is long or holds signs that need care."""
    return name if len(name) <= LONGEST_NAME and name.isascii() and name.isprintable() else ""


def settings(name: str) -> AbstractContextManager[None]:
    """The context in which a figure is made and written; `name` makes its identifiers its own and repeatable."""
    return mpl.rc_context({**_SETTINGS, "svg.hashsalt": name})


def inline_svg(figure: Figure, name: str, title: str, description: str, sheet: StyleSheet) -> Markup:
    """`figure` as an ``<svg>`` element for the page.

    Args:
        figure: what to draw; made and passed within `settings(name)`.
        name: identifier of the figure in the page.
        title: what a screen reader announces.
        description: what the figure shows, in a sentence.
        sheet: collects the classes that the page must define.
    """
    stream = io.StringIO()
    FigureCanvasSVG(figure)
    figure.savefig(
        stream, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
    )
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", text, flags=re.DOTALL)
    text = _GROUP_ID.sub("<g", text)
    text = _STYLE.sub(lambda match: f' class="{sheet.class_of(match[1])}"', text)
    text = _GEOMETRY.sub(lambda match: match[1] + _rounded(match[2]) + '"', text)
    text = _PATH.sub(lambda match: match[1] + _short_path(match[2]) + '"', text)
    text = re.sub(r">\s+<", "><", text)
    head, body = text.split(">", 1)
    box = re.search(r'viewBox="([^"]*)"', head)
    assert box is not None
    label = f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(description)}</desc>'
    return Markup(  # noqa: S704 - our own drawing; matplotlib escapes its labels
        f'<svg class="fig" id="{name}" viewBox="{box[1]}" role="img" aria-labelledby="{name}-t {name}-d">{label}{body}'
    )


def _short_path(path: str) -> str:
    """`path` at a tenth of a unit; lines as relative moves, which take a third of the room that absolute ones do."""
    if _POLYLINE.sub("", path):
        return _rounded(path)
    return "".join(_relative(match[1], match[2], match[3], match[4]) for match in _POLYLINE.finditer(path))


def _relative(x: str, y: str, lines: str, close: str) -> str:
    here_x, here_y = round(float(x) * 10), round(float(y) * 10)
    parts = [f"M{_tenth(here_x)} {_tenth(here_y)}"]
    numbers = [round(float(number) * 10) for number in lines.replace("L", " ").split()]
    pending = 0  # along the horizontal, not yet written
    for to_x, to_y in zip(numbers[::2], numbers[1::2], strict=True):
        dx, dy = to_x - here_x, to_y - here_y
        here_x, here_y = to_x, to_y
        if not dy and (pending >= 0) == (dx >= 0):
            pending += dx
            continue
        if pending:
            parts.append(f"h{_tenth(pending)}")
            pending = 0
        if not dy:
            pending = dx
        elif dx:
            parts.append(f"l{_tenth(dx)} {_tenth(dy)}")
        else:
            parts.append(f"v{_tenth(dy)}")
    if pending:
        parts.append(f"h{_tenth(pending)}")
    return "".join(parts) + close


def _tenth(value: int) -> str:
    whole, rest = divmod(abs(value), 10)
    text = f"{whole or ''}.{rest}" if rest else str(whole)
    return f"-{text}" if value < 0 else text


def _rounded(geometry: str) -> str:
    return _NUMBER.sub(_one_decimal, " ".join(geometry.split()))


def _one_decimal(match: re.Match[str]) -> str:
    return f"{float(match[0]):.1f}".removesuffix(".0")
