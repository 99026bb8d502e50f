"""Many snapshots at once: which files are meant, here or elsewhere, and their digests."""

from __future__ import annotations

import gc
import glob
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from oomscope.commands.common import remote
from oomscope.commands.common.engines import LostWorkerError, run_all
from oomscope.commands.common.progress import Progress
from oomscope.errors import OomscopeError, RequestError
from oomscope.frozen import frozen

if TYPE_CHECKING:
    from oomscope.analysis.compare.digest import Digest
    from oomscope.analysis.records import Location
    from oomscope.redaction.aliases import Aliases

_PACKED = ("", ".gz", ".bz2", ".xz", ".zst")
_IN_FOLDERS = (*(f"{form}{packed}" for form in (".pickle", ".pkl") for packed in _PACKED), ".digest.json")
_LARGEST_DIGEST = 200_000_000
_Made = tuple[list["Digest"], str | None]

_one_at_a_time = threading.Lock()
"""A worker of Dask may have many threads; all the same it holds one snapshot."""


@frozen
class BadFile:
    """A file that could not be read, and why."""

    file: str
    error: str


def find_files(paths: Sequence[str]) -> list[str]:
    """The files that `paths` mean: files, patterns, and folders with all snapshots and digests below them; or URLs.

    Raises:
        RequestError: there is none.
    """
    found = [file for path in paths for file in _meant(path)]
    if not found:
        raise RequestError(f"{', '.join(paths)}: there is no snapshot; name files, or a folder with some")
    return list(dict.fromkeys(found))


def _meant(path: str) -> Iterator[str]:
    if remote.is_url(path):
        yield from remote.find(path, _is_in_folders)
    elif Path(path).is_dir():
        yield from sorted(str(file) for file in Path(path).rglob("*") if _is_in_folders(file.name) and file.is_file())
    elif not Path(path).exists() and glob.has_magic(path):
        yield from sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - a pattern may be absolute
    else:
        yield path


def _is_in_folders(name: str) -> bool:
    return name.lower().endswith(_IN_FOLDERS)


def read_all(
    paths: Sequence[str],
    *,
    redact: bool = False,
    redact_key: Path | None = None,
    force: bool = False,
    scheduler: str | None = None,
    processes: int | None = None,
) -> tuple[list[Digest], list[BadFile]]:
    """The digests of `paths`, and the files that could not be read, which are said on stderr as well.

    Args:
        paths: as `find_files` takes them.
        redact: whether to put aliases for names.
        redact_key: where to write what is behind them.
        force: whether that file may exist.
        scheduler: see `run_all`.
        processes: see `run_all`.

    Raises:
        RequestError: none could be read.
    """
    files = find_files(paths)
    digests: list[Digest] = []
    bad: list[BadFile] = []
    for file, (found, error) in zip(files, _made(files, scheduler, processes), strict=True):
        if error is not None:
            bad.append(BadFile(_shown(file), error))
        digests += found
    if not digests:
        raise RequestError(f"none of {len(files)} files could be read; the first: {bad[0].error}" if bad else "nothing")
    for one in bad:
        click.echo(f"Warning: {_one_line(one.error)}", err=True)
    if redact:
        # Why a file could not be read may quote it.
        return redacted(digests, redact_key, force), [BadFile(f"file {at}", "redacted") for at, _ in enumerate(bad, 1)]
    return digests, bad


def redacted(digests: Sequence[Digest], key: Path | None, force: bool) -> list[Digest]:
    """`digests` with aliases for names; headlines, which quote names in prose, are left out."""
    from oomscope.commands.common.pipeline import write_key
    from oomscope.redaction.aliases import Aliases

    aliases = Aliases()
    found = [_redacted(one, aliases) for one in digests]
    write_key(aliases.key(), key, force)
    return found


def _redacted(one: Digest, aliases: Aliases) -> Digest:
    def alias(where: Location | None) -> Location | None:
        return None if where is None else type(where)(*aliases.code(where.file, where.function, where.line))

    return replace(
        one,
        file=aliases.alias("file", one.file),
        host=None if one.host is None else aliases.alias("host", one.host),
        job=None if one.job is None else aliases.alias("job", one.job),
        headline=None,
        sites=tuple(replace(site, site=alias(site.site), caller=alias(site.caller)) for site in one.sites),
    )


def _one_line(text: str) -> str:
    from oomscope.wording.clean import clean

    return clean(text, 500)


def _made(files: Sequence[str], scheduler: str | None, processes: int | None) -> list[_Made]:
    made: list[_Made] = [([], None)] * len(files)
    # A digest is read in less time than it takes to hand it to another process and back.
    quick = [at for at, file in enumerate(files) if scheduler is None and _is_quick(file)]
    slow = sorted(set(range(len(files))) - set(quick))
    with Progress() as progress:
        for done, at in enumerate(quick, start=1):
            made[at] = digest_file(files[at])
            progress.tell("findings", done / len(files))
        outcomes = run_all(digest_file, [files[at] for at in slow], scheduler=scheduler, processes=processes)
        for done, (place, outcome) in enumerate(outcomes, start=len(quick) + 1):
            at = slow[place]
            made[at] = ([], _lost(files[at], outcome)) if isinstance(outcome, Exception) else outcome
            progress.tell("findings", done / len(files))
    return made


def _is_quick(file: str) -> bool:
    return file.lower().endswith(".digest.json") and not remote.is_url(file)


def _lost(path: str, error: Exception) -> str:
    reason = str(error) if isinstance(error, LostWorkerError) else f"{type(error).__name__}: {error}"
    return f"{_shown(path)}: it could not be read by a worker ({' '.join(reason.split())})"


def _shown(path: str) -> str:
    return remote.shown(path) if remote.is_url(path) else path


def digest_file(path: str) -> _Made:
    """The digests of one file, a snapshot or a document of digests; or none, and why. In any process."""
    name = _shown(path)
    try:
        with _one_at_a_time, _here(path) as file:
            try:
                return _digests(file, name), None
            except OomscopeError as error:
                words = str(error).replace(str(file), name)
                return [], words if name in words else f"{name}: {words}"
    except OomscopeError as error:
        return [], str(error)
    except MemoryError:
        return [], f"{name}: not enough memory for this snapshot"
    except Exception as error:
        # One strange file must not keep the others from being read.
        return [], f"{name}: this is a bug in oomscope ({type(error).__name__}: {error}); please report it"


def _here(path: str) -> AbstractContextManager[Path]:
    return remote.fetched(path) if remote.is_url(path) else nullcontext(Path(path))


def _digests(file: Path, name: str) -> list[Digest]:
    from oomscope.analysis import analyze
    from oomscope.analysis.compare.digest import digest, failed_device
    from oomscope.reading import load
    from oomscope.wording.verdict_text import headline

    if (known := _as_digests(file, name)) is not None:
        return known
    try:
        findings = analyze(load(file), at="peak", whatif=False)
        failed = failed_device(findings)
        words = headline(failed.oom.verdict) if failed is not None and failed.oom is not None else None
        made = digest(findings, name, words)
        del findings, failed
        return [made]
    finally:
        # What was found refers to itself; without this the next file is read while the last one is still in memory.
        gc.collect()


def _as_digests(file: Path, name: str) -> list[Digest] | None:
    """The digests of a document of them; None for other files."""
    from oomscope.analysis.compare.digest import is_document, read_document

    try:
        if not name.lower().endswith(".json") or file.stat().st_size > _LARGEST_DIGEST:
            return None
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return list(read_document(document)) if is_document(document) else None
