"""All sentences by code. What stands before the first dot of a code names the file that has its sentence.

A file is loaded with the first note that needs it: most commands say nothing of plans, ledgers or messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from oomscope.model.note import Note
from oomscope.wording.template import Sentence, fill

_FILES = (
    "reading", "reconciliation", "recording", "whatif", "plan", "ledger", "causes", "verdict", "message_proofs",
    "message_advice", "message_gaps", "doubts",
)  # fmt: skip


class _Sentences(Mapping[str, Sentence]):
    """Every sentence by its code; a file ``verdict`` holds the table ``VERDICT``."""

    def __getitem__(self, code: str) -> Sentence:
        file = code.partition(".")[0]
        if file not in _FILES:
            raise KeyError(code)
        return _table(file)[code]

    def __iter__(self) -> Iterator[str]:
        return (code for file in _FILES for code in _table(file))

    def __len__(self) -> int:
        return sum(len(_table(file)) for file in _FILES)


SENTENCES: Mapping[str, Sentence] = _Sentences()


def _table(file: str) -> Mapping[str, Sentence]:
    table: Mapping[str, Sentence] = getattr(import_module(f"oomscope.wording.{file}"), file.upper())
    return table


def say(note: Note) -> str:
    """The sentence of `note`; a note among its values is said within it.

    Raises:
        KeyError: no sentence has its code, or a value is missing: a defect that the tests look for.
    """
    values = {name: say(value) if isinstance(value, Note) else value for name, value in note.values.items()}
    sentence = SENTENCES[note.code]
    return sentence(values) if callable(sentence) else fill(sentence, values)
