"""What a recording is asked to do: options given in code, then ``OOMSCOPE_*`` variables, then defaults."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from oomscope.recording.saying import say_once

REASONS = ("oom", "exception", "exit", "peers")
SERIES = ("jsonl", "tensorboard", "wandb", "mlflow")
_PREFIX = "OOMSCOPE_"


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of ``oomscope.record``; each is also a variable: ``OOMSCOPE_MAX_ENTRIES=50000``."""

    output_dir: Path = Path()
    """Where dumps go; made when it does not exist."""
    filename: str = "{reason}_{host}_rank{rank}_pid{pid}_{time}_{sequence}.pickle"
    """A pattern of these words; nothing is ever overwritten."""
    on: frozenset[str] = frozenset({"oom"})
    """When to dump: ``"oom"``, ``"exception"`` (any that leaves), ``"exit"`` (always at the end), ``"peers"`` (this
    rank is being ended by a signal, or fails because another one is gone)."""
    history: str = "all"
    """``"all"`` keeps a history of allocations, ``"state"`` only the stacks of live blocks, at the least cost."""
    stacks: str = "python"
    """``"python"``, or ``"all"`` with C++ frames: these cost minutes when the dump is written."""
    context: str | None = "alloc"
    """Which entries have a stack of their own: ``"alloc"`` (all but frees), ``"state"`` (live blocks only), None, or
    ``"all"``: torch then looks at the Python stack while an exception unwinds, too, which may be lost, as that with
    which `torch.utils.checkpoint` ends its recomputation (seen in torch 2.11)."""
    max_entries: int = 200_000
    """How many of the last entries each device keeps; 200,000 are some 40 MB of dump."""
    all_threads: bool = True
    """Whether to note the ``record_function`` ranges of every thread (torch 2.8+), or only of the one that records."""
    compile_context: bool | None = None
    """Whether to note in which region of torch.compile each allocation was made (torch 2.8+); None: once the program
    has compiled something, for torch looks at every operator then."""
    pinned: bool = True
    """Whether to record pinned host memory as well (torch 2.14+)."""
    fx_traces: bool = True
    """Whether to add the lines that torch.fx made its code from, where torch kept them (torch 2.10+)."""
    devices: frozenset[int] | None = None
    """The devices to dump; None is all."""
    max_dumps: int = 4
    """How many OOM dumps to keep: the first ones, and always the last."""
    min_interval: float = 5.0
    """Seconds between two OOM dumps of one process: frameworks retry, and cuDNN tries plans that do not fit."""
    walk_budget: float = 10.0
    """Seconds that the search for names and holders may take; 0 leaves it out."""
    write_budget: float = 120.0
    """Seconds that writing the dump may take; on a folder too slow for it, a dump without traces is tried instead."""
    sources: bool = True
    """Whether to put the lines of source that the dump names into it, each with its neighbours."""
    verdict: float = 20.0
    """Seconds that the analysis for the three lines on stderr may take, in a process of its own; 0 leaves it out."""
    report: bool = False
    """Whether to have the HTML report made, by a process without the GPU."""
    compress: bool = False
    """Whether to gzip the dump; pytorch.org/memory_viz then needs it unpacked."""
    ranks: frozenset[int] | None = None
    """The ranks that record; None is all."""
    stagger: float = 0.0
    """Seconds that each local rank waits longer than the one before it before writing."""
    signal: str | None = None
    """A signal that asks for a snapshot, such as ``"SIGUSR1"``; left alone where someone else handles it."""
    peer_signals: tuple[str, ...] = ("SIGTERM",)
    """The signals that end a rank when another has failed; with ``on="peers"``. Whoever handles them still does."""
    grace: float = 25.0
    """Seconds that a rank which is being ended has for its dump; launchers wait 30 before they kill."""
    series: tuple[str, ...] = ()
    """Where figures of the steps go while the job runs: ``"jsonl"`` (a file beside the dumps), ``"tensorboard"``,
    ``"wandb"``, ``"mlflow"`` (by their own clients, into the program's run)."""
    series_interval: float = 1.0
    """Seconds between two rows there; steps that come between are merged. 0 is a row a step."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Kept in the dump as it is: plain values only."""

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"record: {name} is one of {_listed(allowed)}, not {getattr(self, name)!r}")
        unknown = self.on - set(REASONS)
        if unknown:
            raise ValueError(f"record: on takes {_listed(REASONS)}, not {_listed(sorted(unknown))}")
        if set(self.series) - set(SERIES):
            raise ValueError(f"record: series takes {_listed(SERIES)}, not {_listed(self.series)}")
        if self.max_entries < 1 or self.max_dumps < 1:
            raise ValueError("record: max_entries and max_dumps are at least 1")
        try:
            self.filename.format(**dict.fromkeys(PLACEHOLDERS, "x"))
        except (KeyError, IndexError, ValueError):
            words = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise ValueError(f"record: filename is a pattern of {words}, not {self.filename!r}") from None


PLACEHOLDERS = ("reason", "host", "rank", "pid", "time", "sequence")
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "history": ("all", "state"),
    "stacks": ("python", "all"),
    "context": ("all", "alloc", "state", None),
}


def plain(value: Any) -> Any:
    """`value` in plain containers, strings and numbers: all that a dump may hold, so that every viewer opens it."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        return {plain(key) if isinstance(key, (str, int)) else str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(repr, values))


def _flag(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("1", "true", "yes", "on"):
        return True
    if lowered in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(text)


def _numbers(value: Any) -> frozenset[int] | None:
    if value is None or isinstance(value, int):
        return None if value is None else frozenset({value})
    if isinstance(value, str):
        return frozenset(int(part) for part in value.split(",") if part.strip()) or None
    return frozenset(int(part) for part in value)


def _words(value: Any) -> frozenset[str]:
    parts = value.split(",") if isinstance(value, str) else value
    return frozenset(part.strip() for part in parts)


def _names(value: Any) -> tuple[str, ...]:
    return tuple(sorted(_words(value) - {""}))


def _or_none(text: str | None) -> str | None:
    return None if text is None or text.strip().lower() in ("none", "") else text


# From what a caller or a variable gives to what the field holds.
_READ: dict[str, Callable[[Any], Any]] = {
    "output_dir": Path,
    "on": _words,
    "devices": _numbers,
    "ranks": _numbers,
    "context": _or_none,
    "signal": _or_none,
    "peer_signals": _names,
    "series": _names,
}
# Only for variables, which are text.
_PARSE: dict[str, Callable[[str], Any]] = {
    "max_entries": lambda text: int(text.replace("_", "")),
    "max_dumps": int,
    "min_interval": float,
    "walk_budget": float,
    "write_budget": float,
    "verdict": float,
    "stagger": float,
    "grace": float,
    "series_interval": float,
    "sources": _flag,
    "all_threads": _flag,
    "compile_context": _flag,
    "pinned": _flag,
    "fx_traces": _flag,
    "report": _flag,
    "compress": _flag,
    "metadata": json.loads,
}
_SHORTHANDS = {"device": "devices"}


def build(given: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Options:
    """Options from what the code gave, with variables and defaults for the rest.

    Raises:
        TypeError: an unknown option was given.
        ValueError: an option has a value it cannot have. A bad variable is only said and passed over: it must not
            stop a job.
    """
    names = [item.name for item in fields(Options)]
    values = {_SHORTHANDS.get(name, name): value for name, value in given.items()}
    for name in values:
        if name not in names:
            raise TypeError(f"record: unknown option {name!r}; the options are {', '.join(names)}")
    values = {name: _READ[name](value) if name in _READ else value for name, value in values.items()}
    for name, value in _from_environment(names, os.environ if environment is None else environment).items():
        values.setdefault(name, value)
    return Options(**values)


def _from_environment(names: list[str], environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name in names:
        variable = _PREFIX + name.upper()
        if variable in environment:
            try:
                parse: Callable[[str], Any] = _PARSE.get(name) or _READ.get(name) or str
                value = parse(environment[variable])
                Options(**{name: value})
                found[name] = value
            except (ValueError, TypeError):
                say_once(variable, f"{variable}={environment[variable]!r} is not understood and is passed over")
    return found
