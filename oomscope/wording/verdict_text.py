"""A verdict, its evidence and its advice in words."""

from __future__ import annotations

from typing import NamedTuple

from oomscope.analysis.verdict.records import Advice, Evidence, Verdict
from oomscope.model import Note
from oomscope.wording import say
from oomscope.wording.clean import clean
from oomscope.wording.evidence import EVIDENCE
from oomscope.wording.labels import CONFIDENCE_LABELS, label
from oomscope.wording.remedies import REMEDIES
from oomscope.wording.remedy_words import SOURCES
from oomscope.wording.template import fill


class AdviceText(NamedTuple):
    """A piece of advice in words: what to do, why, what it costs, and where it is documented."""

    action: str
    why: str
    price: str
    source: str


def sentences(notes: tuple[Note, ...], longest: int) -> str:
    """The sentences of `notes` as one text, free of anything but printable characters."""
    said = (say(note) for note in notes)
    return clean(" ".join(f"{one[:1].upper()}{one[1:]}" for one in said), longest)


def headline(verdict: Verdict) -> str:
    """Why the request failed, in a few sentences."""
    return sentences(verdict.headline, 900)


def said_confidence(verdict: Verdict) -> str:
    """How sure the cause is, and why it is not surer."""
    confidence = label(verdict.confidence, CONFIDENCE_LABELS)
    return confidence if verdict.doubt is None else f"{confidence}: {say(verdict.doubt)}"


def evidence_text(evidence: Evidence) -> str:
    """What a number of the evidence counts."""
    sentence = EVIDENCE[evidence.slug]
    return sentence(evidence.values) if callable(sentence) else fill(sentence, evidence.values)


def advice_text(advice: Advice) -> AdviceText:
    """A piece of advice in words."""
    words = REMEDIES[advice.slug]
    action, why, price = (
        part(advice.values) if callable(part) else fill(part, advice.values)
        for part in (words.action, words.why, words.price)
    )
    return AdviceText(action, why, price, SOURCES[words.source])
