"""Files elsewhere, by their URL, through fsspec: ``s3://``, ``gs://``, ``hf://``, ``https://``, whatever it knows."""

from __future__ import annotations

import glob
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oomscope.errors import RequestError

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def is_url(path: str) -> bool:
    """Whether `path` is one."""
    return _URL.match(path) is not None


def shown(url: str) -> str:
    """`url` without what may be a secret: a user's password, the signature of a link that was handed out."""
    scheme, _, rest = url.partition("://")
    if scheme.lower() in ("http", "https"):
        rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def find(url: str, is_meant: Callable[[str], bool]) -> list[str]:
    """The files that `url` means: itself, those that match it, or those of the folder it is that `is_meant` accepts.

    Raises:
        RequestError: it cannot be looked into.
    """
    if is_meant(shown(url)) and not glob.has_magic(shown(url)):
        return [url]
    with _said(url):
        files, path = _file_system(url)
        if glob.has_magic(path.partition("?")[0]):
            names = [name for name in files.glob(path) if is_meant(name)]
        elif files.isdir(path):
            names = [name for name in files.find(path) if is_meant(name)]
        else:
            return [url]
        return sorted(files.unstrip_protocol(name) for name in names)


@contextmanager
def fetched(url: str) -> Iterator[Path]:
    """A copy of the file on this machine, as long as the block lasts.

    A snapshot is read more than once, and from the end; so it lies on disk (``TMPDIR``) rather than in memory.

    Raises:
        RequestError: it cannot be fetched.
    """
    with tempfile.TemporaryDirectory(prefix="oomscope-") as folder:
        target = Path(folder) / "snapshot"
        with _said(url):
            files, path = _file_system(url)
            files.get_file(path, str(target))
        yield target


def _file_system(url: str) -> tuple[Any, str]:
    import fsspec.core

    files, path = fsspec.core.url_to_fs(url)
    return files, path


@contextmanager
def _said(url: str) -> Iterator[None]:
    """Whatever a service raises, in one line without secrets."""
    try:
        yield
    except ImportError as error:
        reason = " ".join(str(error).split())
        raise RequestError(f"{shown(url)}: to read it, pip install 'oomscope[remote]' ({reason})") from None
    except Exception as error:
        reason = " ".join(str(error).replace(url, shown(url)).split())
        raise RequestError(f"{shown(url)}: it cannot be fetched ({type(error).__name__}: {reason})") from error
