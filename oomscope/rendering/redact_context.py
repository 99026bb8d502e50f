"""What stays of the `oomscope` key of a dump when it is redacted. Everything not named here goes."""

from __future__ import annotations

import builtins
import re
from collections.abc import Mapping
from typing import Any

from oomscope.rendering.aliases import Aliases

_TORCH_MESSAGE = re.compile(r"(?:CUDA|HIP|XPU|NPU) out of memory\. Tried to allocate [\d.]+ [KMGT]iB")
_KEPT_TEXTS = frozenset({
    "version", "created", "reason", "captured_at", "torch", "cuda", "driver", "python", "backend", "conf", "stacks",
    "context", "category", "dtype", "type",
})  # fmt: skip
"""Texts that tell of software and of the occasion, not of people."""
_CARD = re.compile(r"(?:NVIDIA|AMD|Intel|Ascend|Tesla|GeForce|Quadro|Instinct|A\d|H\d|B\d)[\w ./()-]*\Z")
_DROPPED = frozenset({"argv", "environment", "metadata", "uuid", "pid", "platform"})
_CODE = frozenset({"failing", "main"})


def redact_context(context: Mapping[str, Any], aliases: Aliases) -> dict[str, Any]:
    """A copy of `context` that keeps numbers and known harmless texts, with aliases for names."""
    return {key: _member(key, value, aliases, "") for key, value in context.items() if key not in _DROPPED}


def _member(key: str, value: Any, aliases: Aliases, parent: str) -> Any:
    if key in _CODE and isinstance(value, (list, tuple)):
        return [_frame(frame, aliases) for frame in value if isinstance(frame, Mapping)]
    if isinstance(value, Mapping):
        return {
            _key(name, aliases): _member(str(name), item, aliases, key)
            for name, item in value.items()
            if name not in _DROPPED
        }
    if isinstance(value, (list, tuple)):
        return [_member(key, item, aliases, parent if not isinstance(item, Mapping) else key) for item in value]
    return _text(key, value, aliases, parent) if isinstance(value, str) else value


def _key(name: Any, aliases: Aliases) -> Any:
    """Names of members are the format's own or, in torch's statistics, torch's; others are aliased."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_.]*", str(name)) else aliases.alias("key", str(name))


def _text(key: str, text: str, aliases: Aliases, parent: str) -> str:
    if key == "message":
        match = _TORCH_MESSAGE.match(text)
        return match[0] if match else aliases.alias("message", text)
    if key == "host":
        return aliases.alias("host", text)
    if key in ("steps", "marks") or (key == "name" and parent in ("steps", "marks")):
        return aliases.range_name(text)
    if key == "name" and parent == "devices" and _CARD.match(text):
        return text
    if key == "name" and parent == "processes":
        return aliases.alias("process", text)
    if key in ("name", "holder", "holders", "saved_for"):
        return aliases.name(text)
    if key == "kind" and re.fullmatch(r"parameter|buffer|gradient|optimizer_state|collection|graph|cycle|tensor", text):
        return text
    if key in _KEPT_TEXTS:
        return text if key != "type" else _class(text, aliases)
    return aliases.alias("text", text)


def _class(name: str, aliases: Aliases) -> str:
    """The type of an exception: torch's and Python's own stay."""
    bare = name.rsplit(".", 1)[-1]
    return name if hasattr(builtins, bare) or name.startswith("torch.") or "OutOfMemory" in bare else aliases.name(name)


def _frame(frame: Mapping[str, Any], aliases: Aliases) -> dict[str, Any]:
    line = frame.get("line")
    path, number, name = aliases.code(
        str(frame.get("filename", "")), str(frame.get("name", "")), line if isinstance(line, int) else 0
    )
    return {"filename": path, "line": number, "name": name}
