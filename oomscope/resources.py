"""Where the templates and the sample snapshots are, in a checkout as well as in an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The folder `name` (``templates`` or ``sample_snapshots``): inside the installed package, or beside it.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    for parent in (_PACKAGE, _PACKAGE.parent):
        if (parent / name).is_dir():
            return parent / name
    raise FileNotFoundError(f"oomscope's folder {name!r} is missing from {_PACKAGE}; reinstall oomscope")
