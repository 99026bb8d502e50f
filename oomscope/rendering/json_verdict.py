"""A verdict as plain containers: slugs and values for programs, the sentences beside them for people."""

from __future__ import annotations

from typing import Any

from oomscope.analysis.passes.records import Steps
from oomscope.analysis.verdict.records import Advice, Oom, Verdict
from oomscope.model import Note
from oomscope.rendering.json_plain import plain
from oomscope.wording import say
from oomscope.wording.verdict_text import advice_text, evidence_text, headline, sentences


def oom_document(oom: Oom, steps: Steps) -> dict[str, Any]:
    """A failed request and its verdict."""
    return {**plain(oom, "verdict"), "step": step_at(steps, oom.entry), "verdict": verdict_document(oom.verdict)}


def step_at(steps: Steps, entry: int | None) -> str | None:
    """The name of the step that `entry` lies in, as the other formats show it; None where it lies in none."""
    if entry is None:
        return None
    return next((step.name for step in steps.steps if step.begin <= entry <= step.end), None)


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """A verdict, with the names of the report's schema."""
    return {
        "cause": verdict.cause,
        "confidence": verdict.confidence,
        "doubt": None if verdict.doubt is None else {"code": verdict.doubt.code, "text": say(verdict.doubt)},
        "headline": headline(verdict),
        "headline_notes": [_note(note) for note in verdict.headline],
        "replay": sentences(verdict.replay, 600) or None,
        "qualifying": plain(verdict.qualifying),
        "evidence": [
            {"slug": one.slug, "text": evidence_text(one), "bytes": plain(one.bytes)} for one in verdict.evidence
        ],
        "contributing": list(verdict.contributing),
        "drivers": plain(verdict.drivers),
        "advice": [_advice(one) for one in verdict.advice],
        "cannot_know": [say(note) for note in verdict.cannot_know],
        "suspects": plain(verdict.suspects),
        "pass": plain(verdict.failing_pass),
        "in_progress": plain(verdict.in_progress),
        "asked": plain(verdict.asked),
    }


def _note(note: Note) -> dict[str, Any]:
    return {"code": note.code, "values": plain(note.values)}


def _advice(advice: Advice) -> dict[str, Any]:
    words = advice_text(advice)
    return {
        "slug": slug(advice),
        "action": words.action,
        "why": words.why,
        "saves_bytes": plain(advice.saves_bytes),
        "enough": advice.enough,
        "price": words.price,
        "source": words.source,
        "refuted": advice.refuted,
        "at": plain(advice.at),
    }


def slug(advice: Advice) -> str:
    """The remedy alone, without the variant that chooses its sentence: ``raise_cap``, ``empty_cache``."""
    return advice.slug.removeprefix("refuted.").partition(".")[0]
