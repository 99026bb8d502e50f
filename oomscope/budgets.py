"""Budgets as users write them: as options, in a file of TOML, or at a test."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oomscope.errors import RequestError
from oomscope.frozen import frozen
from oomscope.units import parse_bytes

if TYPE_CHECKING:
    from oomscope.analysis.compare.budget import Budget
    from oomscope.analysis.compare.figures import Figures

_OPTIONS = ("max_peak", "max_reserved", "max_fragmentation", "max_growth", "tolerance", "baseline")
_TABLES = ("site", "category")


@frozen
class Limits:
    """What was asked for, as it was written."""

    peak: str | None = None
    reserved: str | None = None
    fragmentation: str | None = None
    growth: str | None = None
    sites: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    baseline: str | None = None
    tolerance: str | None = None


def make_budget(limits: Limits, file: Path | None = None) -> Budget:
    """The budget of the options, which go before what `file` says.

    Raises:
        ValueError: a limit cannot be read, or there is none.
        RequestError: a file cannot be read.
    """
    from oomscope.analysis.compare.budget import Budget

    said = {} if file is None else _from_file(file)
    share, count = _share_or_bytes(limits.fragmentation or said.get("max_fragmentation"))
    folder = Path() if limits.baseline else (file or Path()).parent
    baseline = limits.baseline or said.get("baseline")
    tolerance = limits.tolerance or said.get("tolerance")
    return Budget(
        peak=_bytes(limits.peak or said.get("max_peak")),
        reserved=_bytes(limits.reserved or said.get("max_reserved")),
        fragmentation=count,
        fragmentation_share=share,
        growth=_per_pass(limits.growth or said.get("max_growth")),
        sites=tuple(_sites(_pairs(limits.sites, said.get("site")))),
        categories=dict(_categories(_pairs(limits.categories, said.get("category")))),
        baseline=None if baseline is None else load_baseline(folder / str(baseline)),
        **({} if tolerance is None else {"tolerance": _share(tolerance)}),
    )


def load_baseline(path: Path) -> Figures:
    """The baseline in the file `path`.

    Raises:
        RequestError: it cannot be read.
    """
    from oomscope.analysis.compare.baseline import read_baseline

    try:
        return read_baseline(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "it is no JSON"
        raise RequestError(f"{path}: the baseline cannot be read ({reason}); make one with --save-baseline") from error
    except RequestError as error:
        raise RequestError(f"{path}: {error}") from error


def _from_file(path: Path) -> Mapping[str, Any]:
    """The table ``budget`` of a TOML file."""
    try:
        table = _toml(path.read_text(encoding="utf-8")).get("budget")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RequestError(f"{path}: the budget cannot be read: {reason}") from error
    if not isinstance(table, dict):
        raise RequestError(f'{path}: there is no table [budget]; write one, such as [budget] max_peak = "2 GiB"')
    unknown = sorted(set(table) - set(_OPTIONS) - set(_TABLES))
    if unknown:
        raise RequestError(f"{path}: [budget] has no {unknown[0]!r}; it may have {', '.join((*_OPTIONS, *_TABLES))}")
    if wrong := next((name for name in _TABLES if not isinstance(table.get(name, {}), dict)), None):
        raise RequestError(f"{path}: {wrong} must be a table, [budget.{wrong}]")
    return table


def _toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib.loads(text)
    else:
        raise RequestError("a budget file needs Python 3.11 or newer; give the limits as options instead")


def _pairs(texts: Iterable[str], table: Mapping[str, Any] | None) -> dict[str, Any]:
    """``NAME=BYTES`` as pairs, before those of a table."""
    found = dict(table or {})
    for text in texts:
        name, equals, size = text.rpartition("=")
        if not equals or not name.strip():
            raise ValueError(f"{text!r} is not NAME=BYTES, such as model.py:31=2GiB")
        found[name.strip()] = size
    return found


def _sites(pairs: Mapping[str, Any]) -> Iterator[Any]:
    from oomscope.analysis.whatif.changes import parse_site

    return ((parse_site(name), _bytes(size)) for name, size in pairs.items())


def _categories(pairs: Mapping[str, Any]) -> Iterator[Any]:
    from oomscope.wording.labels import CATEGORY_LABELS

    slugs = {label: slug for slug, label in CATEGORY_LABELS.items()}
    for name, size in pairs.items():
        slug = slugs.get(name.lower(), name.lower())
        if slug not in CATEGORY_LABELS:
            raise ValueError(f"{name!r} is no category; there are {', '.join(CATEGORY_LABELS)}")
        yield slug, _bytes(size)


def _bytes(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    return parse_bytes(str(value))


def _per_pass(value: Any) -> int | None:
    return _bytes(value.strip().removesuffix("/pass") if isinstance(value, str) else value)


def _share(value: Any) -> float:
    """``2%`` or ``0.02``."""
    text = str(value).strip()
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no share; write it as 2%") from None
    if not 0 <= share <= 10:
        raise ValueError(f"{text!r} is no share between 0% and 1000%")
    return share


def _share_or_bytes(value: Any) -> tuple[float | None, int | None]:
    if isinstance(value, str) and value.strip().endswith("%"):
        return _share(value), None
    return None, _bytes(value)
