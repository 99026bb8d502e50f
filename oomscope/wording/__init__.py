"""What things are called, and every sentence a reader sees; nothing below this package holds prose."""

from __future__ import annotations

from oomscope.wording.template import Sentence

from oomscope.wording.sentences import say  # isort: skip - the files of sentences may import what stands above

__all__ = ["Sentence", "say"]
