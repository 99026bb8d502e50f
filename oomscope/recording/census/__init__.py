"""The census: which tensor is each block, and who keeps it alive, asked of Python while everything still lives."""

from __future__ import annotations

from oomscope.recording.census.walk import Census, take_census

__all__ = ["Census", "take_census"]
