"""The commands of a document's ``next`` as calls of tools, with the file in its place."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

_TOOL_OF = {
    "report": "verdict",
    "summary": "verdict",
    "whatif": "whatif",
    "diff": "diff",
    "explain": "explain",
    "plan": "plan",
}
_ARGUMENTS = {"--limit": "limit", "--gpu": "gpu", "--at": "at", "--device": "device", "--least-memory": "least_memory"}
_LISTS = {
    "--setting": "settings",
    "--without": "without",
    "--scale": "scale",
    "--free-each-step": "free_each_step",
    "--remedy": "names",
}
_FILES = {"SNAPSHOT": 0, "BEFORE": 0, "AFTER": -1}


def with_calls(document: dict[str, Any], snapshots: Sequence[str]) -> dict[str, Any]:
    """`document` with calls in place of the commands in its ``next``, where there is a tool for them.

    Args:
        document: an answer.
        snapshots: the paths that it is about; without one, its commands stay as they are.
    """
    calls = [call for command in document["next"] if (call := as_call(command, snapshots)) is not None]
    return {**document, "next": [one for number, one in enumerate(calls) if one not in calls[:number]]}


def as_call(command: str, snapshots: Sequence[str]) -> dict[str, Any] | None:
    """The call of a tool that `command` stands for; a command for a shell as ``{"run": command}``; None for neither.

    Neither: a command on a file that is not known here.
    """
    words = shlex.split(command)
    tool = _TOOL_OF.get(words[1]) if words[:1] == ["oomscope"] and len(words) > 1 else None
    if tool is None:
        return {"run": command}
    files = [_FILES[word] for word in words[2:] if word in _FILES]
    if any(word.isupper() and word not in _FILES for word in words[2:]) or (files and not snapshots):
        return None
    paths = [snapshots[index] for index in files]
    arguments = _arguments(words[2:])
    if arguments is None:
        return {"run": shlex.join(snapshots[_FILES[word]] if word in _FILES else word for word in words)}
    if "--remedies" in words:
        tool = "remedies"
    if tool == "diff":
        return {"tool": tool, "arguments": {"before": paths[0], "after": paths[-1], **arguments}}
    if tool == "verdict" and "at" in arguments:
        tool = "at_instant"
    return {"tool": tool, "arguments": {"snapshot": paths[0], **arguments}}


def _arguments(words: Sequence[str]) -> dict[str, Any] | None:
    """The options among `words` as arguments; None where a tool has no such argument."""
    found: dict[str, Any] = {}
    options = iter(words)
    for word in options:
        if word in _ARGUMENTS:
            found[_ARGUMENTS[word]] = next(options)
        elif word in _LISTS:
            found.setdefault(_LISTS[word], []).append(next(options))
        elif word.startswith("-") and word != "--remedies":
            return None
    return found
