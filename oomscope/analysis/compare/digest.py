"""A digest: what is kept of one snapshot among many, small and in plain values; and how digests are put together."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from oomscope.analysis.compare.figures import MOST_SITES, SMALL, SiteFigure, figures
from oomscope.analysis.compare.files import below, root_of
from oomscope.analysis.compare.fingerprint import fingerprint
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.records import Location
from oomscope.errors import RequestError
from oomscope.frozen import frozen
from oomscope.model import package_path
from oomscope.model.frames import slashes

DIGEST_VERSION = 1
KIND = "oomscope digest"
RANK_IN_NAME = re.compile(r"rank[_.-]?(\d+)", re.IGNORECASE)
_JOBS = ("SLURM_JOB_ID", "TORCHELASTIC_RUN_ID")


@frozen
class Digest:
    """One snapshot. Bytes are integers, times are microseconds since the epoch; None is unknown.

    Attributes:
        file: what the reader calls it.
        device: CUDA index of the device that the figures are of: the one with the highest peak.
        rank: None where neither the recording nor the name of the file tells it.
        rank_source: ``recorded`` or ``file``; None with the rank.
        world_size: as recorded.
        host, job: where and as part of what it ran.
        reason: why it was written, as recorded; ``oom`` for a bare snapshot that ends with one.
        created: as recorded, ISO 8601.
        peak_allocated, peak_reserved: the most in the recorded window.
        allocated, reserved: at the end.
        oom_time_us: when the request failed that no allocation followed.
        last_time_us: of the last entry.
        cause, headline: of that failure.
        fingerprint: the same for the same mistake in other runs, whatever the sizes, lines and folders.
        categories: bytes at the peak.
        sites: the largest at the peak, their files named from the program's own folder.
        others: bytes of all other sites.
    """

    file: str
    device: int | None
    rank: int | None
    rank_source: str | None
    world_size: int | None
    host: str | None
    job: str | None
    reason: str | None
    created: str | None
    peak_allocated: int | None
    peak_reserved: int | None
    allocated: int
    reserved: int
    oom_time_us: int | None
    last_time_us: int | None
    cause: str | None
    headline: str | None
    fingerprint: str
    categories: Mapping[str, int]
    sites: tuple[SiteFigure, ...]
    others: int

    def key(self) -> str:
        """What tells it from every other: two digests with one key are the same."""
        return hashlib.sha256(json.dumps(as_row(self), sort_keys=True).encode()).hexdigest()


def digest(findings: Findings, file: str, headline: str | None = None) -> Digest:
    """The digest of `findings`, made at the peak.

    Args:
        findings: as `analyze(snapshot, at="peak")` returns them.
        file: what the reader calls the snapshot.
        headline: of the failure, in words.
    """
    recorded, device = findings.snapshot.recorded, findings.main
    process = recorded.process
    rank, source = _rank(process.rank, file)
    failed = failed_device(findings)
    measured = figures(findings)
    root = root_of(frame.filename for frame in findings.snapshot.stacks.frames)
    sites = tuple(_named_from(root, one) for one in measured.sites)
    shown = _shown(sites, measured.peak_allocated or 0)
    trace = None if device is None else device.history.trace
    return Digest(
        file=file,
        device=None if device is None else device.device,
        rank=rank,
        rank_source=source,
        world_size=process.world_size,
        host=process.host,
        job=next((job for name in _JOBS if (job := process.environment.get(name))), None),
        reason=recorded.reason or ("oom" if failed is not None else None),
        created=recorded.created,
        peak_allocated=measured.peak_allocated,
        peak_reserved=measured.peak_reserved,
        allocated=0 if device is None else device.usage.allocated,
        reserved=0 if device is None else device.usage.reserved,
        oom_time_us=None if failed is None or failed.oom is None else failed.oom.time_us,
        last_time_us=int(trace.time_us[-1]) if trace is not None and trace.timed and len(trace) else None,
        cause=None if failed is None or failed.oom is None else failed.oom.verdict.cause,
        headline=headline if failed is not None else None,
        fingerprint=fingerprint(failed),
        categories=measured.categories,
        sites=shown,
        others=sum(one.bytes for one in sites) - sum(one.bytes for one in shown),
    )


def failed_device(findings: Findings) -> DeviceFindings | None:
    """The device on which a request failed for good, the first of them; None where none did."""
    found = [one for one in findings.devices if one.oom is not None and not one.oom.recovered]
    return min(found, key=lambda one: (one.oom.time_us or 0) if one.oom else 0, default=None)


def _rank(recorded: int | None, file: str) -> tuple[int | None, str | None]:
    if recorded is not None:
        return recorded, "recorded"
    match = RANK_IN_NAME.search(slashes(file).rpartition("/")[2])
    return (int(match[1]), "file") if match else (None, None)


def _shown(sites: tuple[SiteFigure, ...], peak: int) -> tuple[SiteFigure, ...]:
    return tuple(one for one in sites if one.bytes > peak // SMALL)[:MOST_SITES]


def _named_from(root: str, one: SiteFigure) -> SiteFigure:
    """`one` with its files named from the program's folder, so that other hosts' are named the same."""

    def named(where: Location | None) -> Location | None:
        if where is None:
            return None
        return Location(package_path(where.file) or below(where.file, root) or where.file, where.line, where.function)

    return SiteFigure(named(one.site), named(one.caller), one.label, one.bytes, one.category)


def merged(*groups: Iterable[Digest]) -> tuple[Digest, ...]:
    """All digests of `groups`, each once, in one order: whichever way they are put together, the result is the same."""
    alike: dict[tuple[bool, int, str], list[Digest]] = {}
    for group in groups:
        for one in group:
            alike.setdefault((one.rank is None, one.rank or 0, one.file), []).append(one)
    return tuple(one for _, few in sorted(alike.items()) for one in _each_once(few))


def _each_once(few: list[Digest]) -> list[Digest]:
    if len(few) == 1:
        return few  # its key, which takes long, decides nothing
    found = {one.key(): one for one in few}
    return [found[key] for key in sorted(found)]


def as_row(one: Digest) -> dict[str, Any]:
    """A digest as plain containers; `from_row` gives it back."""
    row = {field.name: getattr(one, field.name) for field in fields(one)}
    row["categories"] = dict(one.categories)
    row["sites"] = [
        {
            "site": _plain(site.site),
            "caller": _plain(site.caller),
            "label": site.label,
            "bytes": site.bytes,
            "category": site.category,
        }
        for site in one.sites
    ]
    return row


def as_document(digests: Iterable[Digest]) -> dict[str, Any]:
    """The document of digests."""
    return {"schema_version": DIGEST_VERSION, "kind": KIND, "files": [as_row(one) for one in merged(digests)]}


def read_document(document: Any) -> tuple[Digest, ...]:
    """The digests of a `document`.

    Raises:
        RequestError: it is none, or of a version that is not known.
    """
    if not is_document(document) or document.get("schema_version") != DIGEST_VERSION:
        raise RequestError("this is no digest that can be read; make it anew with oomscope digest")
    try:
        return merged(from_row(row) for row in document["files"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RequestError(f"this digest is damaged ({type(error).__name__}: {error}); make it anew") from error


def is_document(document: Any) -> bool:
    """Whether it is meant to be a digest."""
    return isinstance(document, Mapping) and document.get("kind") == KIND


def from_row(row: Mapping[str, Any]) -> Digest:
    """The digest of a row.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is none.
    """
    return Digest(
        file=str(row["file"]),
        device=_known(row["device"]),
        rank=_known(row["rank"]),
        rank_source=_text(row["rank_source"]),
        world_size=_known(row["world_size"]),
        host=_text(row["host"]),
        job=_text(row["job"]),
        reason=_text(row["reason"]),
        created=_text(row["created"]),
        peak_allocated=_known(row["peak_allocated"]),
        peak_reserved=_known(row["peak_reserved"]),
        allocated=_count(row["allocated"]),
        reserved=_count(row["reserved"]),
        oom_time_us=_known(row["oom_time_us"]),
        last_time_us=_known(row["last_time_us"]),
        cause=_text(row["cause"]),
        headline=_text(row["headline"]),
        fingerprint=str(row["fingerprint"]),
        categories={str(name): _count(count) for name, count in row["categories"].items()},
        sites=tuple(map(_site, row["sites"])),
        others=_count(row["others"]),
    )


def _site(row: Mapping[str, Any]) -> SiteFigure:
    site, caller = _location(row["site"]), _location(row["caller"])
    return SiteFigure(site, caller, _text(row["label"]), _count(row["bytes"]), str(row["category"]))


def _plain(where: Location | None) -> dict[str, Any] | None:
    return None if where is None else {"file": where.file, "line": where.line, "function": where.function}


def _location(row: Mapping[str, Any] | None) -> Location | None:
    return None if row is None else Location(str(row["file"]), _count(row["line"]), str(row["function"]))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _known(value: Any) -> int | None:
    return None if value is None else _count(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is no count")
    return value
