"""``oomscope demo``: the bundled snapshots."""

from __future__ import annotations

import re
from pathlib import Path

import click

from oomscope.commands.common import options, pipeline
from oomscope.commands.common.output import check_target, write
from oomscope.errors import RequestError
from oomscope.resources import folder

_SUFFIX = ".pickle.xz"
_ROW = re.compile(r"^\| `([^`]+)` \| (.+?) \|", re.MULTILINE)


@click.command("demo")
@click.argument("name", required=False)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Output format; json of NAME is that of summary, and writes no report.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing report.")
@options.debug_option
def command(name: str | None, form: str, force: bool) -> None:
    """List the bundled snapshots, or report on one.

    With NAME, the report is written to NAME.html in the current folder.
    """
    if name is not None and name not in (bundled := samples()):
        raise RequestError(f"there is no sample {name!r}; the samples are {', '.join(bundled)}")
    if form == "json":
        _show_json(name)
    elif name is None:
        _list()
    else:
        _report(name, force)


def samples() -> dict[str, str]:
    """The names of the bundled snapshots, with what the README beside them says that each shows."""
    here = folder("sample_snapshots")
    shown = dict(_ROW.findall((here / "README.md").read_text(encoding="utf-8")))
    names = sorted(path.name[: -len(_SUFFIX)] for path in here.glob(f"*{_SUFFIX}"))
    return {name: shown.get(name, "") for name in names}


def _list() -> None:
    bundled = samples()
    width = max(map(len, bundled), default=0)
    for name, shows in bundled.items():
        click.echo(f"{name:<{width}}  {shows}")
    click.echo("\nReport on one with: oomscope demo NAME")


def _show_json(name: str | None) -> None:
    from oomscope.rendering.answers.parts import document
    from oomscope.rendering.json_plain import dumped

    if name is None:
        rows = [{"name": sample, "shows": shows, "file": str(_file(sample))} for sample, shows in samples().items()]
        found = document({"samples": rows}, ["oomscope demo NAME"])
    else:
        from oomscope.rendering.answers.verdict import summary

        found = summary(pipeline.find(str(_file(name)), whatif=None))
    write(dumped(found) + "\n", None, force=False)


def _file(name: str) -> Path:
    return folder("sample_snapshots") / f"{name}{_SUFFIX}"


def _report(name: str, force: bool) -> None:
    target = Path(f"{name}.html")
    check_target(str(target), force=force)
    findings = pipeline.find(str(_file(name)))
    from oomscope.rendering import write_report
    from oomscope.wording.opening import occasion, verdict_text
    from oomscope.wording.paths import shortener

    write_report(findings, target, title=name, force=force)
    click.echo(occasion(findings, shortener(findings.snapshot.stacks)))
    click.echo(verdict_text(findings))
    click.echo(f"\nReport: {target.resolve()}")
