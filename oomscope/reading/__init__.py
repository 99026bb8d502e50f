"""Bytes to model: opening, decompressing and safely unpickling snapshots of every release of torch."""

from oomscope.reading.load import load
from oomscope.reading.source import Progress

__all__ = ["Progress", "load"]
