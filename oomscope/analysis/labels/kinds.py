"""The categories as numbers, in the order of `CATEGORIES`."""

from __future__ import annotations

from oomscope.analysis.records import CATEGORIES

PARAMETER, GRADIENT, OPTIMIZER_STATE, BUFFER, ACTIVATION, TEMPORARY, INPUT, WORKSPACE, UNKNOWN = range(len(CATEGORIES))
