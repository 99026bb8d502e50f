"""All sentences by code. What stands before the first dot of a code names the file that has its sentence."""

from __future__ import annotations

from oomscope.wording import Sentence
from oomscope.wording.causes import CAUSES
from oomscope.wording.reading import READING
from oomscope.wording.reconciliation import RECONCILIATION
from oomscope.wording.recording import RECORDING
from oomscope.wording.verdict import VERDICT
from oomscope.wording.whatif import WHATIF

SENTENCES: dict[str, Sentence] = {}
SENTENCES |= READING
SENTENCES |= RECONCILIATION
SENTENCES |= RECORDING
SENTENCES |= WHATIF
SENTENCES |= CAUSES
SENTENCES |= VERDICT
