"""Many snapshots at once: which files are meant, and their digests, made in several processes."""

from __future__ import annotations

import glob
import json
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oomscope.commands.common.progress import Progress
from oomscope.errors import OomscopeError, RequestError

if TYPE_CHECKING:
    from oomscope.analysis.compare.digest import Digest
    from oomscope.analysis.records import Location
    from oomscope.redaction.aliases import Aliases

MOST_PROCESSES = 8
_FEW = 2
"""Files that are not worth a process each."""
_PACKED = ("", ".gz", ".bz2", ".xz", ".zst")
_IN_FOLDERS = (*(f"{form}{packed}" for form in (".pickle", ".pkl") for packed in _PACKED), ".digest.json")
_LARGEST_DIGEST = 200_000_000


@dataclass(frozen=True, slots=True)
class BadFile:
    """A file that could not be read, and why."""

    file: str
    error: str


def find_files(paths: Sequence[str]) -> list[str]:
    """The files that `paths` mean: files, patterns, and folders with all snapshots and digests below them.

    Raises:
        RequestError: there is none.
    """
    found = [file for path in paths for file in _meant(path)]
    if not found:
        raise RequestError(f"{', '.join(paths)}: there is no snapshot; name files, or a folder with some")
    return list(dict.fromkeys(found))


def _meant(path: str) -> Iterator[str]:
    if Path(path).is_dir():
        yield from sorted(
            str(file) for file in Path(path).rglob("*") if file.name.lower().endswith(_IN_FOLDERS) and file.is_file()
        )
    elif not Path(path).exists() and glob.has_magic(path):
        yield from sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - a pattern may be absolute
    else:
        yield path


def read_all(
    paths: Sequence[str], *, redact: bool = False, redact_key: Path | None = None, force: bool = False
) -> tuple[list[Digest], list[BadFile]]:
    """The digests of `paths`, and the files that could not be read, which are said on stderr as well.

    Raises:
        RequestError: none could be read.
    """
    files = find_files(paths)
    digests: list[Digest] = []
    bad: list[BadFile] = []
    for file, (found, error) in zip(files, _made(files), strict=True):
        if error is not None:
            bad.append(BadFile(file, error))
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


def _made(files: Sequence[str]) -> list[tuple[list[Digest], str | None]]:
    with Progress() as progress:
        processes = min(len(files), os.cpu_count() or 1, MOST_PROCESSES)
        if len(files) <= _FEW or processes == 1:
            return list(_told(map(digest_file, files), len(files), progress))
        # Not forked: a process with threads, as numpy's libraries start, may not be.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            return list(_told(pool.map(digest_file, files), len(files), progress))


def _told(results: Iterator[Any], count: int, progress: Progress) -> Iterator[Any]:
    for done, result in enumerate(results, 1):
        progress.tell("findings", done / count)
        yield result


def digest_file(path: str) -> tuple[list[Digest], str | None]:
    """The digests of one file, a snapshot or a document of digests; or none, and why."""
    try:
        return _digests(path), None
    except OomscopeError as error:
        return [], str(error) if path in str(error) else f"{path}: {error}"
    except MemoryError:
        return [], f"{path}: not enough memory for this snapshot"
    except Exception as error:
        # One strange file must not keep the others from being read.
        return [], f"{path}: this is a bug in oomscope ({type(error).__name__}: {error}); please report it"


def _digests(path: str) -> list[Digest]:
    from oomscope.analysis import analyze
    from oomscope.analysis.compare.digest import digest, failed_device
    from oomscope.reading import load
    from oomscope.wording.verdict_text import headline

    if (known := _as_digests(path)) is not None:
        return known
    findings = analyze(load(path), at="peak", whatif=False)
    failed = failed_device(findings)
    words = headline(failed.oom.verdict) if failed is not None and failed.oom is not None else None
    return [digest(findings, path, words)]


def _as_digests(path: str) -> list[Digest] | None:
    """The digests of a document of them; None for other files."""
    from oomscope.analysis.compare.digest import is_document, read_document

    file = Path(path)
    try:
        if not path.lower().endswith(".json") or file.stat().st_size > _LARGEST_DIGEST:
            return None
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return list(read_document(document)) if is_document(document) else None
