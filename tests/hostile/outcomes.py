"""How a file ends in this process: in a report in every format, in a sentence, or in something that must not be."""

from __future__ import annotations

import io
import json

from oomscope.analysis import analyze
from oomscope.errors import OomscopeError
from oomscope.reading import load
from oomscope.rendering.formats import FORMATS, render

LONGEST_SENTENCE = 2000


class WrongEndError(AssertionError):
    """Neither a report nor one clear sentence."""


def outcome(data: bytes, *, formats: tuple[str, ...] = FORMATS, whatif: bool = False, redact: bool = False) -> str:
    """``report`` or ``sentence``.

    Raises:
        WrongEndError: something else came of it.
    """
    try:
        snapshot = load(io.BytesIO(data))
        if redact:
            from oomscope.redaction.snapshot import redact as redacted

            snapshot, _ = redacted(snapshot)
        findings = analyze(snapshot, whatif=whatif, whatif_seconds=0)
        for form in formats:
            check_text(render(findings, form, None), form)
    except OomscopeError as error:
        said = str(error)
        if "\n" in said or not 10 < len(said) < LONGEST_SENTENCE:
            raise WrongEndError(f"no clear sentence: {said[:300]!r}") from error
        return "sentence"
    except WrongEndError:
        raise
    except BaseException as error:
        raise WrongEndError(f"{type(error).__name__}: {str(error)[:300]}") from error
    return "report"


def check_text(text: str, form: str) -> None:
    """What is true of every text that is rendered, whatever the file holds."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise WrongEndError(f"{form} cannot be written: {error}") from error
    if "<script>alert" in text and form in ("html", "md"):
        raise WrongEndError(f"{form} lets markup through")
    if form in ("text", "md") and any(character in text for character in ("\x1b", "\u202e", "\0")):
        raise WrongEndError(f"{form} lets control characters through")
    if form == "json":
        json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise WrongEndError(f"JSON holds {name}, which is no JSON")
