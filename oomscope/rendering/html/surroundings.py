"""The allocator's settings, and what the recording wrote down about versions, devices and the process."""

from __future__ import annotations

from oomscope.analysis.findings import Findings
from oomscope.wording.clean import clean


def context_rows(findings: Findings) -> list[tuple[str, str]]:
    """Versions and surroundings that the recording wrote down, as pairs of words."""
    context = findings.snapshot.context or {}
    named = ("torch", "cuda", "driver", "python", "platform", "created", "reason")
    rows: list[tuple[str, object]] = [("snapshot layout", f"torch {findings.snapshot.schema}")]
    rows += [(key, context.get(key)) for key in named]
    devices = context.get("devices")
    for device in devices[:8] if isinstance(devices, (list, tuple)) else ():
        if isinstance(device, dict):
            rows.append((f"cuda:{device.get('device', '')}", device.get("name")))
    process = context.get("process")
    if isinstance(process, dict):
        rows += [(key.replace("_", " "), process.get(key)) for key in ("host", "pid", "rank", "world_size")]
        argv = process.get("argv")
        if isinstance(argv, (list, tuple)):
            rows.append(("command", " ".join(str(one) for one in argv[:20])))
    return [(clean(key, 60), clean(str(value), 400)) for key, value in rows if isinstance(value, (str, int, float))]


def settings_rows(findings: Findings) -> list[tuple[str, str]]:
    """The allocator's settings as the snapshot has them."""
    settings = findings.snapshot.settings or {}
    return [(clean(str(key), 80), clean(_short(value), 200)) for key, value in list(settings.items())[:60]]


def _short(value: object) -> str:
    if value in ("", None):
        return "not set"
    if isinstance(value, dict) and len(set(map(str, value.values()))) == 1:
        return f"{next(iter(value.values()))} for every size"
    return str(value) if isinstance(value, (str, int, float)) else repr(value)[:200]
