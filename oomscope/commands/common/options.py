"""Options that several commands share, each defined once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

DEBUG = "oomscope.debug"
"""The key in the context's ``meta`` that says that the user wants tracebacks."""

_NO_LIMITS = "oomscope.no_limits"

AT_NAMES = ("auto", "oom", "peak", "end")


class Instant(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """``auto``, ``oom``, ``peak``, ``end`` or the number of an entry."""

    name = "instant"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """How help and errors show it."""
        return f"{'|'.join(AT_NAMES)}|ENTRY"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        """The name, or the entry as a number."""
        text = str(value)
        if text in AT_NAMES:
            return text
        try:
            entry = int(text.replace(",", "").replace("_", ""))
        except ValueError:
            entry = -1
        if entry < 0:
            self.fail(f"{text!r} is neither {', '.join(AT_NAMES)} nor the number of an entry", param, ctx)
        return entry


class WindowText(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """``FROM:TO``, each ``oom``, ``peak``, ``end``, the number of an entry, a share such as ``95%``, or nothing."""

    name = "window"
    _BOUND = r"(?:oom|peak|end|\d+|\d+(?:\.\d+)?%)?"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """How help and errors show it."""
        return "FROM:TO"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The window without what groups digits."""
        text = str(value).replace(",", "").replace("_", "").replace(" ", "")
        if not re.fullmatch(f"{self._BOUND}:{self._BOUND}", text):
            self.fail(f"{value!r} is no window; write it as FROM:TO, such as 95%:100%, 1000:2000 or peak:", param, ctx)
        return text


def window_option(function: Function) -> Function:
    """``--window`` of what reports."""
    return click.option(
        "--window",
        type=WindowText(),
        help="Report on this part of the trace only, such as 95%:100%, 1000:2000, peak: or :oom; an ENTRY of --at is"
        " one of the whole trace.",
    )(function)


def snapshot_argument(function: Function) -> Function:
    """SNAPSHOT: a path, or - for stdin; whether it is there, `reading` says. With it comes ``--no-limits``."""

    def remember(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001
        if value:
            ctx.meta[_NO_LIMITS] = True

    limits = click.option(
        "--no-limits",
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Read a file even if it unpacks to, or takes, far more memory than snapshots of its size do.",
    )
    return click.argument("snapshot", type=click.Path(allow_dash=True))(limits(function))


def has_limits() -> bool:
    """Whether a file may only ask for as much as snapshots of its size do: the command has no ``--no-limits``."""
    context = click.get_current_context(silent=True)
    return context is None or not context.meta.get(_NO_LIMITS, False)


def device_option(function: Function) -> Function:
    """``--device``."""
    return click.option(
        "--device", type=click.IntRange(min=0), metavar="N", help="Report on this device only (CUDA index)."
    )(function)


def analysis_options(function: Function) -> Function:
    """What decides about the findings: ``--at``, ``--device``, ``--no-whatif``, ``--whatif-seconds``."""
    seconds = click.option(
        "--whatif-seconds",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="Budget for replays after the recorded setting and expandable segments, a second standing for a million"
        " steps on every machine; the report names what was skipped.  [default: by the length of the trace]",
    )
    whatif = click.option("--no-whatif", is_flag=True, help="Do not replay the trace under other settings (faster).")
    at = click.option(
        "--at", type=Instant(), default="auto", show_default=True, help="The instant at which memory is attributed."
    )
    return at(device_option(whatif(seconds(function))))


def source_options(function: Function) -> Function:
    """``--source`` and ``--no-source``."""
    without = click.option("--no-source", is_flag=True, help="Leave out the lines of source that the dump carries.")
    source = click.option(
        "--source",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        metavar="DIR",
        help="Show lines of source from the files in this folder, where the dump does not carry them.",
    )
    return source(without(function))


def redact_options(function: Function) -> Function:
    """``--redact`` and ``--redact-key``."""
    key = click.option(
        "--redact-key",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="With --redact: write the real name behind each alias to this file.",
    )
    redact = click.option(
        "--redact", is_flag=True, help="Replace names of users, hosts, paths and your own modules with aliases."
    )
    return redact(key(function))


def check_redaction(redact: bool, redact_key: Path | None) -> None:
    """Raise `UsageError` where there is a key without a redaction."""
    if redact_key and not redact:
        raise click.UsageError("--redact-key needs --redact.", click.get_current_context())


def check_source(source: Path | None, **contradicting: object) -> None:
    """Raise `UsageError` where a folder is named and one of the options that contradict it is given."""
    if source and any(contradicting.values()):
        first, *rest = (f"--{name.replace('_', '-')}" for name in contradicting)
        listed = ", ".join([first, *rest[:-1]]) + f" or {rest[-1]}"
        raise click.UsageError(f"--source cannot be combined with {listed}.", click.get_current_context())


def output_options(function: Function) -> Function:
    """``-o`` and ``--force``."""
    force = click.option("--force", is_flag=True, help="Overwrite existing output.")
    output = click.option(
        "-o", "--output", type=click.Path(allow_dash=True), metavar="FILE|-", help="Output file; - is stdout."
    )
    return output(force(function))


def of_many_snapshots(*formats: str) -> Callable[[Function], Function]:
    """What commands on many snapshots take: the paths, ``--format``, the output and the redaction."""
    form = click.option(
        "-f",
        "--format",
        "form",
        type=click.Choice(formats),
        help="Output format.  [default: by the suffix of -o, else text]",
    )
    paths = click.argument("paths", nargs=-1, required=True, metavar="DIR|SNAPSHOT...")
    return lambda function: paths(form(output_options(redact_options(engine_options(debug_option(function))))))


def form_of(form: str | None, output: str | None, formats: tuple[str, ...]) -> str:
    """`form`, else the one of `formats` that the suffix of `output` names, else text."""
    suffix = Path(output or "").suffix.lower().removeprefix(".")
    return form or (suffix if suffix in formats else "text")


def engine_options(function: Function) -> Function:
    """Where many files are read: ``--processes``, ``--scheduler``."""
    scheduler = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Have the workers of this Dask scheduler (tcp://head:8786) read the files; they need the same paths.",
    )
    processes = click.option(
        "--processes",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes that read files on this machine.  [default: one per core, at most 8]",
    )
    return processes(scheduler(function))


def debug_option(function: Function) -> Function:
    """``--debug``: tracebacks instead of none."""

    def remember(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001
        if value:
            ctx.meta[DEBUG] = True

    return click.option(
        "--debug", is_flag=True, expose_value=False, is_eager=True, callback=remember, help="Show tracebacks."
    )(function)
