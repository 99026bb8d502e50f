"""JSON, also where it was cut off."""

from __future__ import annotations

import json
import re
from typing import Any

from oomscope.errors import SnapshotError
from oomscope.reading.printable import printable
from oomscope.reading.salvage import TRACES, Salvaged

_BLANK = re.compile(r"[ \t\n\r]*")
# The lists whose items are taken one by one stand at most here: a trace in the list of traces in the snapshot.
_DEEPEST = 3
_ESCAPE = 7
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")


class _CutError(Exception):
    """The text ends within a value."""


def parse(contents: bytes) -> tuple[Any, Salvaged | None]:
    """The document in `contents`, or what is whole of it where they are cut off.

    Raises:
        SnapshotError: it is not JSON.
        UnicodeDecodeError: it is not even text.
    """
    try:
        return json.loads(contents), None
    except UnicodeDecodeError as error:
        # The cut may be in the middle of a character.
        if error.start < len(contents) - 3:
            raise
        text, why = contents[: error.start].decode(error.encoding), "it ends within a character"
    except json.JSONDecodeError as error:
        text, why = error.doc, f"{error.msg}, line {error.lineno}, column {error.colno}"
    except ValueError as error:
        raise SnapshotError(f"the JSON cannot be read ({printable(str(error), 120)}).") from error
    found = _Prefix(text).salvaged()
    if found is None:
        raise SnapshotError(f"the file begins like JSON but is none ({why}).")
    return None, found


class _Prefix:
    """Reads JSON value by value until it ends."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = _BLANK.match(text).end()  # type: ignore[union-attr]  # it also matches nothing
        self._decoder = json.JSONDecoder()
        self._path: list[tuple[Any, Any]] = []  # open containers with the key or number of what is read in them

    def salvaged(self) -> Salvaged | None:
        """What is whole before the cut; None where the text is no JSON at all, or is not cut off."""
        try:
            self._value()
            return None
        except _CutError:
            document = self._path[0][0] if self._path else None
        except (ValueError, RecursionError):
            return None
        if isinstance(document, list):
            return Salvaged({"segments": document}, "segments", None)
        if not isinstance(document, dict):
            return Salvaged({}, None, None)
        part = self._path[0][1] if self._path else None
        in_trace = part == TRACES and len(self._path) > 1
        return Salvaged(document, part, int(self._path[1][1]) if in_trace else 0 if part == TRACES else None)

    def _value(self) -> Any:
        opening = self._peek()
        return self._dict() if opening == "{" else self._list([]) if opening == "[" else self._whole()

    def _dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._path.append((found, None))
        self._at += 1
        while self._peek() != "}":
            key = self._whole()
            if not isinstance(key, str):
                raise ValueError
            self._path[-1] = found, key
            self._expect(":")
            if self._peek() == "[":
                found[key] = []
                self._list(found[key])
            else:
                found[key] = self._whole()
            self._path[-1] = found, None
            if self._peek() != "}":
                self._expect(",")
        self._at += 1
        self._path.pop()
        return found

    def _list(self, found: list[Any]) -> list[Any]:
        self._path.append((found, 0))
        self._at += 1
        while self._peek() != "]":
            self._path[-1] = found, len(found)
            if self._peek() == "[" and len(self._path) < _DEEPEST:
                found.append([])
                self._list(found[-1])
            else:
                found.append(self._whole())
            if self._peek() != "]":
                self._expect(",")
        self._at += 1
        self._path.pop()
        return found

    def _peek(self) -> str:
        self._at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]
        if self._at >= len(self._text):
            raise _CutError
        return self._text[self._at]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise ValueError(character)
        self._at += 1

    def _whole(self) -> Any:
        """A value that is there to its end."""
        self._peek()
        try:
            value, end = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            if self._is_cut(error):
                raise _CutError from None
            raise
        # A number at the very end may go on.
        if end == len(self._text) and isinstance(value, (int, float)):
            raise _CutError
        self._at = end
        return value

    def _is_cut(self, error: json.JSONDecodeError) -> bool:
        rest = self._text[error.pos :].rstrip()
        is_word = any(word.startswith(rest) for word in _WORDS)
        # An escape is wrong where it ends too early, but also where it is wrong.
        is_escape = error.msg.startswith("Invalid") and len(rest) < _ESCAPE
        is_number = not rest.strip(".eE+-")
        return is_number or is_word or is_escape or error.msg.startswith("Unterminated string")
