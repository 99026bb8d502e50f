"""All sentences by code. What stands before the first dot of a code names the file that has its sentence."""

from __future__ import annotations

from oomscope.model.note import Note
from oomscope.wording.causes import CAUSES
from oomscope.wording.ledger import LEDGER
from oomscope.wording.message_advice import MESSAGE_ADVICE
from oomscope.wording.message_gaps import MESSAGE_GAPS
from oomscope.wording.message_proofs import MESSAGE_PROOFS
from oomscope.wording.plan import PLAN
from oomscope.wording.reading import READING
from oomscope.wording.reconciliation import RECONCILIATION
from oomscope.wording.recording import RECORDING
from oomscope.wording.template import Sentence, fill
from oomscope.wording.verdict import VERDICT
from oomscope.wording.whatif import WHATIF

SENTENCES: dict[str, Sentence] = {}
SENTENCES |= READING
SENTENCES |= RECONCILIATION
SENTENCES |= RECORDING
SENTENCES |= WHATIF
SENTENCES |= PLAN
SENTENCES |= LEDGER
SENTENCES |= CAUSES
SENTENCES |= VERDICT
SENTENCES |= MESSAGE_PROOFS
SENTENCES |= MESSAGE_ADVICE
SENTENCES |= MESSAGE_GAPS


def say(note: Note) -> str:
    """The sentence of `note`; a note among its values is said within it.

    Raises:
        KeyError: no sentence has its code, or a value is missing: a defect that the tests look for.
    """
    values = {name: say(value) if isinstance(value, Note) else value for name, value in note.values.items()}
    sentence = SENTENCES[note.code]
    return sentence(values) if callable(sentence) else fill(sentence, values)
