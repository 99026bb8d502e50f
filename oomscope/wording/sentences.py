"""All sentences by code; each part of the program has a file of them."""

from __future__ import annotations

from oomscope.wording import Sentence

SENTENCES: dict[str, Sentence] = {}
