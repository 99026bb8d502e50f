"""Matplotlib loaded without the tables of properties in its docstrings, for a process that shows nobody its help."""

from __future__ import annotations

import sys


def load_matplotlib() -> None:
    """Load what the figures need in two thirds of the time.

    Matplotlib writes, as it loads, a table of all its properties into the docstrings of a hundred classes. This leaves
    them out, so it is for our own command line only: in somebody's notebook `help` would be the poorer for it.
    """
    if "matplotlib.axes" in sys.modules:
        return
    from matplotlib import artist

    real = artist.kwdoc
    artist.kwdoc = lambda artist: ""  # noqa: ARG005 - its type has this name
    try:
        import matplotlib.figure  # noqa: F401
    finally:
        artist.kwdoc = real
