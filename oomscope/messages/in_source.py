"""Words in a program's source, which puts a message together, looks for one or lists codes: none was printed."""

from __future__ import annotations

import re

from oomscope.messages.records import Reading

_BEFORE, _AFTER = 240, 160
_QUOTE = r"[\"'`]"
_REST = rf"[^\"'`]{{0,60}}{_QUOTE}"
"""The rest of a literal, and its end."""
_OPEN = re.compile(rf"{_QUOTE}[^\"'`]{{0,80}}\Z")

_PUT_TOGETHER = re.compile(
    rf"""{_REST} (?: , (?: [a-z]\w*_\w+ | \w+::\w+ | \w+\.\w+ ) [(<] | << | \+ (?:\w+::)? [a-z_]\w* [(.+]
            | \.format\( )
      | [^"'`]{{0,20}} tried to allocate {_QUOTE}
      | [^"'`]{{0,60}}? (?: \{{ [\w:.!()]{{0,40}} \}} | (?<! \d) % [-\d.]{{0,4}} l{{0,2}} [sdfuz] (?! [a-z]) )""",
    re.VERBOSE | re.IGNORECASE,
)
"""``"Tried to allocate ", format_size(size)``, or a place that a size is put into."""

_TEST = re.compile(rf"(?:if|elif|while|assert|return|or|and|not|\()[rbf]?{_QUOTE}[^\"'`]{{0,40}}\Z", re.IGNORECASE)
_TESTED = re.compile(
    rf"""{_REST} (?:not)? in (?: (?:str|repr)\( | \w*_\w+ | \w+\.\w+\(
      | (?: e | ex | exc | err | error | msg | message | out | output | log | line | text | stderr )
        (?: [^a-z] | and | or | \Z) )""",
    re.VERBOSE | re.IGNORECASE,
)
"""``if "out of memory" in error_msg``."""
_SEARCH = re.compile(
    rf"""(?: (?: includes | contains | find | indexof | search | match | compile | startswith | endswith | strstr
           | assertin | raisesregex ) \( (?: [^()"'`]{{0,60}} , )? | \bmatch= | (?<! [=!] ) [=!]= )
         [rbf]{{0,2}} {_QUOTE} [^"'`]{{0,60}} \Z
      | (?: grep | findstr ) (?: -{{1,2}} \w+ ){{0,3}} {_QUOTE} [^"']{{0,100}} \Z""",
    re.VERBOSE | re.IGNORECASE,
)
"""A call or a command that looks for what is quoted."""

_PATTERN_BEFORE = re.compile(r"\(\?[:=!<P][^\s\"'`]{0,80}\Z")
_PATTERN_AFTER = re.compile(r"[^\"'`]{0,30}?(?:\[\^(?!\w{1,10}\])|\\{1,2}[sdwb][+*?]|\.[*+]\?|\(\.[*+])")
"""Parts of a regular expression."""

_MATCHES = re.compile(
    rf"""(?: match (?:es|ing)? | detect\w{{0,3}} | pars (?:es|ing) | recogni[sz]\w{{1,3}} )
         (?: (?! but | fail | crash ) [\w'’-] ){{0,30}} (?: lines? | messages? | errors? | texts? | output )
         (?: [\w'’-]{{0,30}} ,? (?: e\.g\. | for example ) | ,? (?: such as | like ) ) [:,]?
         (?: {_QUOTE} [^"'`]{{1,160}} {_QUOTE} [,;]? (?:or)? ){{0,4}} {_QUOTE} \Z""",
    re.VERBOSE | re.IGNORECASE,
)
"""``Matches the kernel's lines, e.g.: "..."``, which may be several."""

_CODE = re.compile(r"[A-Z]{2,20}(?:_[A-Z]{2,20}){0,2}?_(?:STATUS|ERROR|RESULT)_")
_MOST_OF_ALL = 2
"""So many other codes beside one are a list of what a library may say."""


def is_in_source(reading: Reading, text: str) -> bool:
    """Whether `reading` is of a program's source and not of what it printed; what has figures was printed.

    Args:
        reading: what a wording made of `text`.
        text: without blanks.
    """
    if reading.was_printed:
        return False
    start, end = max(0, reading.start - _BEFORE), reading.end + _AFTER
    return (
        _is_literal(reading, text, start, end)
        or _MATCHES.search(text, start, reading.start) is not None
        or _is_pattern(reading, text, start, end)
        or _is_listed(reading, text, start, end)
    )


def _is_literal(reading: Reading, text: str, start: int, end: int) -> bool:
    """Whether it stands in a literal that is put together, or that something else is searched for."""
    if _OPEN.search(text, start, reading.start) is None:
        return False
    if _PUT_TOGETHER.match(text, reading.end, end) or _SEARCH.search(text, start, reading.start):
        return True
    return _TEST.search(text, start, reading.start) is not None and _TESTED.match(text, reading.end, end) is not None


def _is_pattern(reading: Reading, text: str, start: int, end: int) -> bool:
    return (
        _PATTERN_BEFORE.search(text, start, reading.start) is not None
        or _PATTERN_AFTER.match(text, reading.end, end) is not None
    )


def _is_listed(reading: Reading, text: str, start: int, end: int) -> bool:
    """Whether it is the name of a code among others of its library, each with its number."""
    code = _CODE.match(text, reading.start, reading.end)
    if code is None:
        return False
    entry = re.compile(rf"{code[0]}([A-Z_]{{2,40}})[`'\"]?(?:\(-?(?:0x)?\d{{1,4}}\)|=-?(?:0x)?\d{{1,4}})")
    names = {one[1] for one in entry.finditer(text, start, end)}
    own = entry.match(text, reading.start)
    return own is not None and len(names - {own[1]}) >= _MOST_OF_ALL
