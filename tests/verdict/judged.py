"""What is said of the captures in `tests/captures/programs`, as a file: ``python -m tests.verdict.judged`` writes it.

It tells nobody whether an answer is right; `test_programs` does. It makes every change of an answer visible as a
difference of `JUDGED`, which whoever changes a rule reads before committing it. Words are left out: they may change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Oom, Suspect
from oomscope.model import Note
from tests.verdict.known import Known, found, programs

JUDGED = Path(__file__).with_name("judged.json")
SUSPECTS = 4
"""How many of a capture are written down: the first of them make the headline."""


def written() -> dict[str, Any]:
    """What the file has of each capture."""
    told: dict[str, Any] = json.loads(JUDGED.read_text(encoding="utf-8"))
    return told


def judged(one: Known) -> dict[str, Any]:
    """What is said of a capture as ``recorded``, and what else without the recording's own key, as ``bare``."""
    recorded, bare = (digest(found(one.path, with_key=with_key)) for with_key in (True, False))
    return {"recorded": recorded, "bare": {key: value for key, value in bare.items() if recorded.get(key) != value}}


def digest(device: DeviceFindings) -> dict[str, Any]:
    """What matters of a device: its memory, what grows, and the verdict where a request failed."""
    at = device.at
    memory = {
        "in use": _pairs({"allocated": at.allocated, "active": at.active, "reserved": at.reserved}),
        "growth": [
            f"{row.kind} {_spelled(row.caller or row.site)}: {_pairs({'passes': row.passes, 'live': row.live_bytes})}"
            for row in device.growth
        ],
    }
    return memory if device.oom is None else {**memory, **_of(device.oom)}


def _of(oom: Oom) -> dict[str, Any]:
    verdict, asked, failing = oom.verdict, oom.verdict.asked, oom.verdict.failing_pass
    return {
        "cause": f"{verdict.cause}, {verdict.confidence}",
        "doubt": verdict.doubt and _lines((verdict.doubt,))[0],
        "headline": _lines(verdict.headline),
        "limit": _pairs({"": oom.limit.source, "low": oom.limit.low, "high": oom.limit.high}),
        "asked": asked and _pairs({"": asked.phase, "site": asked.site, "node": asked.node}),
        "qualifying": _pairs({one.cause: one.bytes for one in verdict.qualifying}),
        "contributing": " ".join(verdict.contributing),
        "evidence": _pairs({one.slug: one.bytes for one in verdict.evidence if one.slug != "without"}),
        "cannot know": " ".join(one.code for one in verdict.cannot_know),
        "suspects": [_suspect(one) for one in verdict.suspects[:SUSPECTS]],
        "advice": [
            _pairs({"": one.slug, "saves": one.saves_bytes, "enough": one.enough, "at": one.at})
            for one in verdict.advice
        ],
        "pass": failing and _pairs({"loop": failing.loop, "index": failing.index, "completed": failing.completed}),
    }


def _suspect(one: Suspect) -> str:
    told = {
        "retained": one.retained,
        "tensors": one.tensors,
        "passes": one.passes or None,
        "finished": one.finished_bytes or None,
        "earlier": one.earlier_bytes or None,
        "at": one.at,
        "unread": one.unread,
        "reads": one.reads,
    }
    return f"{one.kind} {one.holder}: {_pairs(told)}"


def _lines(notes: Iterable[Note]) -> list[str]:
    return [f"{one.code} {_pairs(one.values)}".rstrip() for one in notes]


def _pairs(values: Mapping[str, Any]) -> str:
    known = {name: value for name, value in values.items() if value not in (None, "", ())}
    return " ".join(f"{name}={_spelled(value)}".lstrip("=") for name, value in known.items())


def _spelled(value: object) -> str:
    if isinstance(value, Location):
        return f"{value.file.rsplit('/', 1)[-1]}:{value.line}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_spelled, value))})"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def main() -> None:
    """Write the file anew."""
    told = {name: judged(one) for name, one in programs().items()}
    JUDGED.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
