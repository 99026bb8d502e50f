"""Foreign text made fit to be shown: every name in a snapshot was written by a stranger."""

from __future__ import annotations


def clean(text: str, limit: int = 300) -> str:
    """`text` in one line, the middle cut beyond `limit`; what is not printable (controls, bidi marks) is escaped."""
    if len(text) > limit:
        tail = limit // 3
        text = f"{text[: limit - tail - 1]}…{text[-tail:]}"
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    return " " if character in "\t\n\r" else ascii(character)[1:-1]
