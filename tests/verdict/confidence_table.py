"""How often verdicts of each confidence are right, on captures of programs whose mistake is known.

``python -m tests.verdict.confidence_table [-o FILE] [FOLDERS…]`` prints the tables as Markdown, and writes them between
the two marks of FILE. Each folder holds captures and a ``truths.json``, or has one beside it, in ``FOLDER_truth/``.
Without folders: what is in this repository, and what lies in ``../shared/snapshots``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from oomscope.analysis.records import CAUSES
from oomscope.units import plural
from tests.shared import SHARED
from tests.verdict.known import (
    PROGRAMS,
    TESTS,
    UNKNOWABLE_BARE,
    Known,
    Said,
    captures_in,
    found,
    recorded,
    said,
    shared,
)

BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
LEVELS = ("high", "medium", "low")
NOTHING = "nothing failed"


@dataclass(frozen=True)
class Judged:
    """One verdict beside the truth."""

    known: Known
    with_key: bool
    said: Said

    @property
    def right(self) -> bool:
        """Whether the cause is the true one, or one that the definitions admit."""
        return self.known.admits(self.said.cause)

    @property
    def arguable(self) -> str | None:
        """Why one can argue about it, where it is not right."""
        if self.right:
            return None
        if not self.with_key and self.known.cause in UNKNOWABLE_BARE:
            return "a bare snapshot does not hold the size of the card"
        if self.known.cause is None and self.said.recovered:
            return "a request failed, was caught, and the program succeeded"
        return self.known.arguable


def judged(captures: Iterable[Known]) -> Iterator[Judged]:
    """The verdicts on captures, with the recording's own key where there is one, and without it."""
    for known in captures:
        keyed = recorded(known.path).context is not None
        for with_key in (True, False) if keyed else (False,):
            yield Judged(known, with_key, said(known.path, with_key=with_key))
        found.cache_clear()
        recorded.cache_clear()
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def tables(verdicts: Sequence[Judged]) -> str:
    """All tables and lists, as Markdown."""
    keys = [key for key in (True, False) if any(one.with_key is key for one in verdicts)]
    parts = []
    for key in keys:
        mine = [one for one in verdicts if one.with_key is key]
        title = "With the recording's own key" if key else "Without it: what a bare snapshot of torch tells"
        wrong = [one for one in mine if not one.right]
        high = sum(one.said.confidence == "high" for one in wrong)
        parts += [
            f"### {title}",
            f"{plural(len(mine), 'capture')}, {len(mine) - len(wrong)} right, {len(wrong)} wrong, {high} of them with "
            f"high confidence; arguable among the wrong ones: {sum(1 for one in wrong if one.arguable)}.",
            _by_cause(mine),
        ]
    wrong = [one for one in verdicts if not one.right]
    parts += ["### Wrong today", _listed(wrong) if wrong else "None."]
    return "\n\n".join(parts) + "\n"


def _by_cause(verdicts: Sequence[Judged]) -> str:
    """Right of all, by the cause that was said and the confidence."""
    rows = [f"| said | {' | '.join(LEVELS)} |", "|---|---|---|---|"]
    for cause in CAUSES:
        mine = [one for one in verdicts if one.said.cause == cause]
        if mine:
            rows.append(f"| {cause} | {' | '.join(_share(mine, level) for level in LEVELS)} |")
    rows.append(f"| **all** | {' | '.join(_share(verdicts, level) for level in LEVELS)} |")
    silent = [one for one in verdicts if one.said.cause is None]
    text = "\n".join(rows)
    if not silent:
        return text
    right = sum(one.right for one in silent)
    return f"{text}\n\nNo failure was found in {plural(len(silent), 'capture')}; in {right} of them nothing had failed."


def _share(verdicts: Sequence[Judged], level: str) -> str:
    mine = [one for one in verdicts if one.said.confidence == level]
    return f"{sum(one.right for one in mine)} of {len(mine)}" if mine else ""


def _listed(wrong: Sequence[Judged]) -> str:
    rows = ["| capture | key | said | confidence | true | why it is arguable |", "|---|---|---|---|---|---|"]
    for one in sorted(wrong, key=lambda one: (one.known.name, not one.with_key)):
        key, cause = "with" if one.with_key else "without", one.said.cause or NOTHING
        true = " or ".join((one.known.cause or NOTHING, *one.known.acceptable))
        cells = (one.known.name, key, cause, one.said.confidence or "", true, one.arguable or "")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def gather(folders: Sequence[Path]) -> list[Known]:
    """The captures of all folders."""
    beside = SHARED.resolve()
    return [one for folder in folders for one in (shared() if folder.resolve() == beside else captures_in(folder))]


def write(path: Path, text: str) -> None:
    """Put `text` between the marks of the document at `path`.

    Raises:
        ValueError: the document does not have both marks.
    """
    document = path.read_text()
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{path} has no place for the tables: {BEGIN} … {END}")
    path.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a command."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, help="a document with the two marks")
    parser.add_argument("folders", nargs="*", type=Path)
    chosen = parser.parse_args(arguments)
    here = [TESTS / "captures", PROGRAMS, *([SHARED] if SHARED.is_dir() else [])]
    text = tables(list(judged(gather(chosen.folders or here))))
    print(text)
    if chosen.output is not None:
        write(chosen.output, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
