"""Foreign text made fit for a message: a stranger's file may hold terminal escapes or names of a megabyte."""

from __future__ import annotations

_LIMIT = 60


def printable(value: object, limit: int = _LIMIT) -> str:
    """`value` as one short line: unprintable characters escaped, the middle cut out beyond `limit` characters."""
    text = value if isinstance(value, str) else _short_repr(value)
    if len(text) > limit:
        text = f"{text[: limit - limit // 3]}…{text[-(limit // 3) :]}"
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def _short_repr(value: object) -> str:
    # A container's or a huge number's repr may be as large as the file.
    if value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and value.bit_length() < 200):
        return repr(value)
    return f"a {type(value).__name__}"


def listing(names: list[str], limit: int = 6) -> str:
    """``'a', 'b' and 3 more``: the first `limit` names, quoted."""
    shown = ", ".join(f"'{printable(name, 40)}'" for name in names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown
