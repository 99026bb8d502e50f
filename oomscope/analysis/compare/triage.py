"""Many dumps of many jobs, put together by what went wrong."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

from oomscope.analysis.compare.digest import Digest, merged
from oomscope.frozen import frozen
from oomscope.model.frames import slashes


@frozen
class TriageGroup:
    """Dumps with one fingerprint.

    Attributes:
        fingerprint: of the mistake.
        cause, headline: of the example; None where no request failed.
        count: how many dumps.
        jobs: which jobs they are of, by the scheduler's number, else by their folder or host.
        first_seen, last_seen: ISO 8601, UTC; None where no dump tells.
        example: the file of the dump with the highest peak.
    """

    fingerprint: str
    cause: str | None
    headline: str | None
    count: int
    jobs: tuple[str, ...]
    first_seen: str | None
    last_seen: str | None
    example: str


def triage(digests: Iterable[Digest]) -> tuple[TriageGroup, ...]:
    """The groups of `digests`, the largest first; failures before dumps without one."""
    groups: dict[str, list[Digest]] = {}
    for one in merged(digests):
        groups.setdefault(one.fingerprint, []).append(one)
    found = [_group(fingerprint, files) for fingerprint, files in groups.items()]
    return tuple(sorted(found, key=lambda one: (one.cause is None, -one.count, one.last_seen or "", one.fingerprint)))


def _group(fingerprint: str, files: list[Digest]) -> TriageGroup:
    example = max(files, key=lambda one: (one.peak_allocated or 0, one.file))
    seen = sorted(filter(None, map(_seen, files)))
    return TriageGroup(
        fingerprint=fingerprint,
        cause=example.cause,
        headline=example.headline,
        count=len(files),
        jobs=tuple(sorted({_job(one) for one in files})),
        first_seen=seen[0] if seen else None,
        last_seen=seen[-1] if seen else None,
        example=example.file,
    )


def _job(one: Digest) -> str:
    folder = slashes(one.file).rpartition("/")[0]
    return one.job or folder or one.host or one.file


def _seen(one: Digest) -> str | None:
    """When the dump was made: by the trace, else as recorded."""
    time = one.oom_time_us or one.last_time_us
    if time:
        try:
            return datetime.fromtimestamp(time // 1_000_000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        except (OverflowError, ValueError, OSError):
            return None
    return one.created
