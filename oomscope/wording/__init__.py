"""What things are called, and every sentence a reader sees; nothing below this package holds prose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from oomscope.model.note import Note
from oomscope.wording.template import fill

Sentence: TypeAlias = "str | Callable[[Mapping[str, Any]], str]"
"""A template (see `oomscope.wording.template`), or for the few that need to decide, a function of the values."""


def say(note: Note) -> str:
    """The sentence of `note`.

    Raises:
        KeyError: no sentence has its code, or a value is missing: a defect that the tests look for.
    """
    from oomscope.wording.sentences import SENTENCES

    sentence = SENTENCES[note.code]
    return sentence(note.values) if callable(sentence) else fill(sentence, note.values)
