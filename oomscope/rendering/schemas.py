"""The JSON Schemas of every document that oomscope writes, by name."""

from __future__ import annotations

from pathlib import Path

from oomscope.errors import RequestError

_SUFFIX = ".schema.json"


def schema_names() -> tuple[str, ...]:
    """The names of all schemas: those of the commands, but for ``baseline``, which ``check`` writes and reads."""
    return tuple(sorted(path.name[: -len(_SUFFIX)] for path in Path(__file__).parent.glob(f"*{_SUFFIX}")))


def schema_text(name: str) -> str:
    """The schema `name` as JSON.

    Raises:
        RequestError: there is none.
    """
    if name not in schema_names():
        raise RequestError(f"there is no schema {name!r}; there are {', '.join(schema_names())}")
    return Path(__file__).with_name(f"{name}{_SUFFIX}").read_text(encoding="utf-8")
