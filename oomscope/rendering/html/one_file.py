"""What every page is made of: one file with its style and script, which loads nothing and trusts nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from oomscope import resources
from oomscope.rendering.html import palette
from oomscope.rendering.html.compiled_templates import CompiledTemplates
from oomscope.rendering.html.first_screen import quoted
from oomscope.rendering.html.percent import share
from oomscope.rendering.html.svg import StyleSheet
from oomscope.units import format_bytes, format_count, format_duration, plural
from oomscope.wording import labels
from oomscope.wording.clean import clean
from oomscope.wording.places import holder_name

_COMMENT = re.compile(r"^[ \t]*/\*(?:(?!\*/).)*\*/[ \t]*\n", re.M | re.S)
_INDENTATION = re.compile(r"\n[ \t\n]+")
_EARLY = 'document.documentElement.classList.add("js")'
"""Runs before the first paint, so that what needs the script has its room from the start."""


def framed(environment: Environment, sheet: StyleSheet, scripts: Sequence[str], data: dict[str, Any]) -> dict[str, Any]:
    """What the frame of a page needs: style, script, the policy that allows just these, and the script's data.

    Args:
        environment: as `page_environment` gives it.
        sheet: the classes of the page's figures.
        scripts: files of templates/script, in the order in which they are put together.
        data: what the script reads.
    """
    light, dark = palette.css_variables()
    rules = environment.get_template("report.css").render(light=_ours(light), dark=_ours(dark), palette=palette)
    style = rules + sheet.css()
    script = f'"use strict";\n(() => {{\n{"".join(_script(name) for name in scripts)}}})();\n'
    return {
        "style": _ours(style),
        "script": _ours(script),
        "early": _ours(_EARLY),
        "policy": _ours(_policy(style, script)),
        "data": _embedded(data),
        "palette": palette,
    }


@cache
def page_environment(longest: int) -> Environment:
    """What renders our templates: everything is escaped, and texts are cut beyond `longest` characters."""

    def finalize(value: Any) -> Any:
        """Every text on its way into the page is a stranger's until shown otherwise."""
        if value is None:
            return ""
        if isinstance(value, str) and not hasattr(value, "__html__"):
            return clean(value, longest)
        return value

    templates = resources.folder("templates")
    environment = Environment(
        loader=FileSystemLoader(templates),
        bytecode_cache=CompiledTemplates(templates),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        bytes=_bytes, count=format_count, duration=format_duration, plural=plural, label=labels.label,
        size=format_bytes, share=share, holder_name=holder_name, quoted_text=lambda text: quoted(clean(text, longest)),
    )  # fmt: skip
    return environment


def _ours(text: str) -> Markup:
    """Text of our own, which goes into the page as it is."""
    return Markup(text)  # noqa: S704


def whole(sentence: str) -> Markup:
    """A sentence of ours, which quotes foreign names only within its own bounds: it is never cut."""
    return escape(sentence)


def _bytes(value: int | None) -> Markup:
    """Bytes in three digits, exact on hover."""
    if value is None:
        return Markup('<span class="none" title="not known">–</span>')
    return Markup('<span class="b" title="{}">{}</span>').format(f"{value:,} bytes", format_bytes(value))


def _embedded(data: dict[str, Any]) -> Markup:
    """JSON for a script element: nothing in it can close the element or open a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return _ours(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}' '{_hash(_EARLY)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _script(name: str) -> str:
    """A file of templates/script without what only its reader needs: indentation, and comments on lines of their own.

    No literal in them runs over several lines, which a test sees to.
    """
    text = (resources.folder("templates") / "script" / f"{name}.js").read_text(encoding="utf-8")
    return _INDENTATION.sub("\n", _COMMENT.sub("", text))
