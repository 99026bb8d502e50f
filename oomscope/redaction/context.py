"""What stays of the `oomscope` key of a dump when it is redacted. Everything not named here goes."""

from __future__ import annotations

import builtins
import re
from collections.abc import Mapping
from typing import Any

from oomscope.analysis.records import CATEGORIES
from oomscope.redaction.aliases import Aliases
from oomscope.redaction.settings import redact_conf

_TORCH_MESSAGE = re.compile(r"(?:CUDA|HIP|XPU|NPU) out of memory\. Tried to allocate [\d.]+ [KMGT]iB")
_KEYS = frozenset({
    "schema_version", "version", "created", "reason", "captured_at", "exception", "type", "message", "request",
    "device", "alloc_size", "limit_or_total", "device_free", "devices", "index", "name", "total", "free", "cap",
    "memory_stats", "processes", "bytes", "this", "torch", "cuda", "driver", "python", "allocator", "backend",
    "conf", "process", "host", "rank", "local_rank", "world_size", "stacks", "failing", "main", "recording",
    "started_us", "max_entries", "context", "history", "joined", "observer", "ooms", "steps", "begin_us", "end_us",
    "peak_allocated", "peak_reserved", "retries", "steps_before", "allocated", "reserved", "marks", "time_us",
    "tensors", "address", "dtype", "shape",
    "category", "holders", "saved_for", "visible", "holder", "kind", "retained", "nodes", "count", "walk", "seconds",
    "complete", "objects", "notes", "facts", "snapshot", "threads", "frames", "threads_left_out", "backward",
    "autograd", "node", "gradients_of", "forward", "path", "length", "maxlen", "place", "finished", "running", "at",
    "left_out", "stores", "device_type", "pools", "pool", "pinned_stats", "asked", "unread",
    "reads", "since", "loop", "others", "gathering", "last",
})  # fmt: skip
"""Keys of the dump's format that tell nothing private, or whose values get aliases. Lines of source go: no alias
makes them harmless."""
_STATISTIC = re.compile(
    r"(?:allocation|segment|active|inactive_split|(?:allocated|reserved|active|inactive_split|requested)_bytes)"
    r"\.(?:all|small_pool|large_pool)\.(?:current|peak|allocated|freed)"
    r"|oversize_(?:allocations|segments)\.(?:current|peak|allocated|freed)"
    r"|reserved_bytes_by_private_pools\.\d+_\d+\.(?:all|small_pool|large_pool)\.(?:current|peak|allocated|freed)"
    r"|(?:allocations|segments|active_requests|(?:allocated|reserved|active)_bytes|host_(?:alloc|free)_time)"
    r"\.(?:current|peak|allocated|freed|total|max|min|count|avg)|num_host_(?:alloc|free)|(?:bucket_\w+\.){0,1}bucket_\w+"
    r"|num_(?:alloc_retries|device_alloc|device_free|ooms|sync_all_streams)|max_split_size"
)
"""Keys of `torch.cuda.memory_stats`."""
_RELEASE = r"\d+(?:\.\d+)*(?:\.?(?:a|b|rc|dev|post)\d*)?(?:\+(?:(?:cu|rocm)[\d.]*|cpu|xpu|git[\da-f]*))?"
_KEPT = {
    "device_type": re.compile("[a-z]{2,12}"),
    "asked": re.compile("[a-z_]{2,40}"),
    **dict.fromkeys(("version", "torch", "cuda", "driver", "python"), re.compile(_RELEASE)),
    "created": re.compile(r"[\dTZ:.+ -]*"),
    "reason": re.compile("oom|exception|exit|peers|request|signal|call"),
    "captured_at": re.compile("observer|except|call"),
    "backend": re.compile("native|cudaMallocAsync"),
    "stacks": re.compile("python|all|none"),
    "context": re.compile("all|alloc|state|none"),
    "history": re.compile("all|state|none"),
    "category": re.compile("|".join(CATEGORIES)),
    "dtype": re.compile(
        r"(?:torch\.)?(?:(?:u?int|float|complex|bits)\d+\w{0,12}|q?u?int\d+|bfloat16|bool|float|double|half|int|long|short)"
    ),
    "kind": re.compile(
        "parameter|buffer|gradient|optimizer_state|list|dict|deque|set|collection|attribute|global|closure|frame"
        "|exception|cycle|graph|tensor|in_flight|call"
    ),
    "since": re.compile("before|between|pass"),
    "place": re.compile("global|local|class|closure|exception|suspended|cycle|deferred|frozen|attribute"),
    # Nodes that C++ defines end in a number; a program's own do not.
    "node": re.compile(r"[A-Z]\w*Backward\d+|AccumulateGrad|CopySlices|GraphRoot"),
    "saved_for": re.compile(r"[A-Z]\w*Backward\d+ \(\w+\)"),
}
"""Texts that tell of software and of the occasion, not of people."""
_EXCEPTIONS = frozenset({
    "torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError", "torch.AcceleratorError", "OutOfMemoryError",
    "AcceleratorError",
})  # fmt: skip
_RANGES = frozenset({"steps", "steps_before", "marks"})
_STACKS = frozenset({"failing", "main", "backward", "frames", "forward", "stores"})
_THREAD = re.compile(r"(MainThread|(?:Thread|Dummy|asyncio)[-_]\d+|ThreadPoolExecutor-\d+_\d+)?(.*)", re.DOTALL)
_HOLDER_WORDS = re.compile(
    r"(\Areference cycle: |\Agradients of |\Asuspended |\Athe (?=\w+ being handled)| being handled(?=\Z|\.)"
    r"|\Athe call in progress at |\Aa (?=.* that nothing visible holds\Z)| that nothing visible holds\Z"
    r"| \(a (?:method|partial) that nothing visible holds\)"
    r"| and \d+ more\Z|\(closure\)|[→…])"
)
"""What the recorder says itself of a holder, around the program's names."""
_CARD_WORD = re.compile(
    r"NVIDIA|AMD|Intel|Ascend|Tesla|GeForce|Quadro|Instinct|Radeon|TITAN|GRID|RTX|GTX|Ti|SUPER|Super|Ada|Generation"
    r"|Blackwell|Laptop|GPU|Data|Center|Max|Pro|Server|Workstation|Edition|Graphics|PCIe|NVL|MIG|Arc|OAM|X"
    r"|SXM\d?|HBM\d\w?|[A-Z]{0,3}\d+[A-Za-z]{0,3}|\d+(?:GB|gb|g)|\d+g\.\d+gb|"
)


def redact_context(context: Mapping[str, Any], aliases: Aliases) -> dict[str, Any]:
    """A copy of `context` that keeps numbers and known harmless texts, with aliases for names."""
    return {key: _member(key, value, aliases, "") for key, value in context.items() if key in _KEYS}


def _member(key: str, value: Any, aliases: Aliases, parent: str) -> Any:
    if key in _STACKS and isinstance(value, (list, tuple)):
        return [_frame(frame, aliases) for frame in value if isinstance(frame, Mapping)]
    if key == "at" and isinstance(value, Mapping):
        return _frame(value, aliases)
    if isinstance(value, Mapping):
        known = _STATISTIC.fullmatch if key in ("memory_stats", "pinned_stats") else _KEYS.__contains__
        return {name: _member(str(name), item, aliases, key) for name, item in value.items() if known(str(name))}
    if isinstance(value, (list, tuple)):
        return [_member(key, item, aliases, parent if not isinstance(item, Mapping) else key) for item in value]
    return _text(key, value, aliases, parent) if isinstance(value, str) else value


def _text(key: str, text: str, aliases: Aliases, parent: str) -> str:
    if key == "message":
        match = _TORCH_MESSAGE.match(text)
        return match[0] if match else aliases.alias("message", text)
    if key == "host":
        return aliases.alias("host", text)
    if key in _RANGES or (key == "name" and parent in _RANGES):
        return aliases.range_name(text)
    if key == "name" and parent == "devices":
        is_card = all(map(_CARD_WORD.fullmatch, re.split(r"[ /()-]", text)))
        return text if is_card else aliases.alias("card", text)
    if key == "name" and parent == "processes":
        return aliases.alias("process", text)
    if key == "name" and parent == "threads":
        match = _THREAD.fullmatch(text)
        return text if match is None or not match[2] else (match[1] or "") + aliases.alias("thread", match[2])
    if key in ("name", "holder", "holders", "path", "gradients_of", "unread", "reads", "others"):
        return _holder(text, aliases)
    if key == "conf":
        return redact_conf(text, aliases)
    if key == "type":
        return text if text in _EXCEPTIONS or hasattr(builtins, text) else aliases.name(text)
    pattern = _KEPT.get(key)
    if pattern is not None and pattern.fullmatch(text):
        return text
    return aliases.name(text) if key in ("saved_for", "node") else aliases.alias("text", text)


def _holder(text: str, aliases: Aliases) -> str:
    parts = _HOLDER_WORDS.split(text)
    # The words that split it stand at the odd places.
    return "".join(
        part if place % 2 or part in _EXCEPTIONS or hasattr(builtins, part) else aliases.name(part)
        for place, part in enumerate(parts)
    )


def _frame(frame: Mapping[str, Any], aliases: Aliases) -> dict[str, Any]:
    line = frame.get("line")
    path, number, name = aliases.code(
        str(frame.get("filename", "")), str(frame.get("name", "")), line if isinstance(line, int) else 0
    )
    return {"filename": path, "line": number, "name": name}
