"""The allocator's settings, and what the recording wrote down about versions, devices and the process."""

from __future__ import annotations

from oomscope.analysis.findings import Findings
from oomscope.wording.clean import clean


def context_rows(findings: Findings) -> list[tuple[str, str]]:
    """Versions and surroundings that the recording wrote down, as pairs of words."""
    recorded = findings.snapshot.recorded
    process = recorded.process
    rows: list[tuple[str, str | int | None]] = [
        ("snapshot layout", f"torch {findings.snapshot.schema}"),
        ("torch", recorded.torch),
        ("cuda", recorded.cuda),
        ("driver", recorded.driver),
        ("python", recorded.python),
        ("platform", recorded.platform),
        ("created", recorded.created),
        ("reason", recorded.reason),
        *((f"cuda:{'?' if one.index is None else one.index}", one.name) for one in recorded.devices[:8]),
        ("host", process.host),
        ("pid", process.pid),
        ("rank", process.rank),
        ("world size", process.world_size),
        ("command", " ".join(process.argv[:20]) or None),
    ]
    return [(clean(key, 60), clean(str(value), 400)) for key, value in rows if value is not None]


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
