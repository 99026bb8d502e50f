"""What is to be told the reader, before it has words: a code, and the values that its sentence needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from oomscope.frozen import frozen


@frozen
class Note:
    """One thing to tell the reader. `oomscope.wording.say` has a sentence for every code.

    Attributes:
        code: such as ``recording.late``; the part before the first dot says what it is about.
        values: what the sentence mentions, by name: bytes and counts as integers, places as `Location`s.
    """

    code: str
    values: Mapping[str, Any] = field(default_factory=dict)


def note(code: str, /, **values: Any) -> Note:
    """The note `code` with `values`."""
    return Note(code, values)
