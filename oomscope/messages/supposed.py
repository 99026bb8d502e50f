"""Words of a failure that is only supposed: a program's advice for the case that memory runs out is no message."""

from __future__ import annotations

import re

from oomscope.messages.records import Reading

_BEFORE = 100
_AFTER = 60
_NAMED = (
    r"(?:an?|any|the|this|some|such|with|that|more)?(?:errors?|messages?|exceptions?|issues?|problems?)?"
    r"(?:like|suchas|saying|of|due|to|:)?"
)
_QUOTES = r"[\"'`*(‘“「]*"
_ENCOUNTERED = re.compile(
    r"(?:(?:if|when|whenever|incase|should|once|unless)(?:you|theuser|users|anyone)"
    r"(?:still|also|ever|do|are|keep|happento)?"
    r"(?:encounter|experience|runinto|run|get|see|face|hit|meet|have|observe|receive|notice|wantto(?:avoid|prevent))"
    rf"|incaseof|intheeventof|ifthereisa?n?|ifthereare)(?:still)?{_NAMED}{_QUOTES}\Z",
    re.IGNORECASE,
)
"""``if you run into``, right before what would be met."""
_DEALT_WITH = re.compile(rf"(?:propagat|handl|simulat|mock)(?:e|es|ing)(?:an?|any|the)?{_QUOTES}\Z", re.IGNORECASE)
"""What a program does with such a failure, whenever there is one."""
_IF = re.compile(rf"if(?:an?|any|the)?{_QUOTES}\Z", re.IGNORECASE)
_OCCURS = re.compile(
    r"[\"'`*)’”」]*(?:errors?|issues?|problems?|exceptions?|s)?[\"'`*)’”」]*"
    r"(?:occurs?|happens?|arises?|appears?|is(?:raised|thrown)|,(?:please|try|reduce|lower|decrease|set|use|consider))",
    re.IGNORECASE,
)
"""What follows ``if out of memory`` there; in a text without blanks ``if`` may end another word."""


def is_supposed(reading: Reading, text: str) -> bool:
    """Whether the words before `reading` say that it may happen; a message with figures was printed, whoever quotes it.

    Args:
        reading: what a wording made of `text`.
        text: without blanks.
    """
    if reading.was_printed:
        return False
    start = max(0, reading.start - _BEFORE)
    if _ENCOUNTERED.search(text, start, reading.start) or _DEALT_WITH.search(text, start, reading.start):
        return True
    after = _OCCURS.match(text, reading.end, reading.end + _AFTER)
    return after is not None and _IF.search(text, start, reading.start) is not None
