"""Do two checkouts find the same in the same snapshots? Figures and slugs strictly, words apart.

``python -m tests.compare_findings OLD_CHECKOUT NEW_CHECKOUT FILES...`` reports on every file with both checkouts as
JSON and compares record by record. Each difference is printed with its path. What is only in the new report is named,
for a report may be added to; what is missing or different is an error. Sentences may change: how many did is said,
``--words`` lists them, those first in which a number changed.

Exit code: 0 where all figures are the same, 1 where one differs, 2 where a checkout cannot be run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal

WORDS = frozenset({
    "headline", "text", "action", "why", "price", "note", "notes", "reason", "replay", "cannot_know", "label", "what",
    "message", "conditions", "next",
})  # fmt: skip
"""Keys whose values are sentences or names for people, wherever they stand."""

WORDS_OF = frozenset({("advice", "source")})
"""Keys that hold words in the records of one list, and slugs elsewhere."""

IGNORED = frozenset({"tool", "schema_version"})
"""Top-level keys that tell of the program and its format, not of the snapshot."""

SECONDS = "600"
"""For replays: enough that the answers do not depend on how busy the machine is."""

NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

Kind = Literal["figure", "word", "added"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the reports differ; what is not there is None."""

    kind: Kind
    path: str
    old: Any = None
    new: Any = None

    def __str__(self) -> str:
        return f"{self.path}: {short(self.old)} → {short(self.new)}"

    @property
    def changes_a_number(self) -> bool:
        """Whether words differ in the numbers they tell, which is rarely meant."""
        return NUMBER.findall(json.dumps(self.old)) != NUMBER.findall(json.dumps(self.new))


def short(value: Any, limit: int = 160) -> str:
    """`value` as JSON in one line."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def are_words(parent: str, key: str) -> bool:
    """Whether the value of `key` is for people; `parent` is the key of the list or record that holds it."""
    return key in WORDS or (parent, key) in WORDS_OF


def compare(old: Any, new: Any, path: str = "", parent: str = "") -> Iterator[Difference]:
    """The differences between two values of JSON at the same place."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _compare_records(old, new, path, parent)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _compare_lists(old, new, path, parent)
    elif old != new or type(old) is not type(new):
        yield Difference("figure", path, old, new)


def _compare_records(old: dict[str, Any], new: dict[str, Any], path: str, parent: str) -> Iterator[Difference]:
    for key in {**old, **new}:
        here = f"{path}.{key}" if path else key
        if not path and key in IGNORED:
            continue
        if key not in old:
            yield Difference("added", here, None, new[key])
        elif key not in new:
            yield Difference("figure", here, old[key], None)
        elif are_words(parent, key):
            if old[key] != new[key]:
                yield Difference("word", here, old[key], new[key])
        else:
            yield from compare(old[key], new[key], here, key)


def _compare_lists(old: list[Any], new: list[Any], path: str, parent: str) -> Iterator[Difference]:
    if len(old) == len(new):
        pairs: list[tuple[int | None, int | None]] = [(index, index) for index in range(len(old))]
    else:
        pairs = _paired([_figures(item, parent) for item in old], [_figures(item, parent) for item in new])
    for before, after in pairs:
        if before is None or after is None:
            where = f"{path}[{after if before is None else before}]"
            yield Difference(
                "figure", where, None if before is None else old[before], None if after is None else new[after]
            )
        else:
            yield from compare(old[before], new[after], f"{path}[{before}]", parent)


def _figures(value: Any, parent: str) -> str:
    """`value` without its words, as a text that is equal where the figures are."""

    def bare(value: Any, parent: str) -> Any:
        if isinstance(value, dict):
            return {key: bare(item, key) for key, item in value.items() if not are_words(parent, key)}
        return [bare(item, parent) for item in value] if isinstance(value, list) else value

    return json.dumps(bare(value, parent), sort_keys=True)


def _paired(old: Sequence[str], new: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Which records of two lists belong together, so that one that is new does not make all after it differ."""
    pairs: list[tuple[int | None, int | None]] = []
    for tag, a, b, c, d in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        common = min(b - a, d - c) if tag == "replace" else (b - a if tag == "equal" else 0)
        pairs += [(a + step, c + step) for step in range(common)]
        pairs += [(index, None) for index in range(a + common, b)]
        pairs += [(None, index) for index in range(c + common, d)]
    return pairs


class CannotRun(Exception):
    """A checkout does not start."""


def report(checkout: Path, snapshot: Path, options: Sequence[str]) -> Any:
    """What `checkout` reports on `snapshot`; of a refusal, the exit code and the message.

    Raises:
        CannotRun: what answered was no oomscope.
    """
    command = [sys.executable, "-m", "oomscope", "report", str(snapshot), "-f", "json", *options]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    if not done.stderr.startswith("Error:"):
        raise CannotRun(f"{checkout} fails on {snapshot}:\n{done.stderr}")
    return {"exit_code": done.returncode, "message": done.stderr.strip()}


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.compare_findings", description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, help="a checkout")
    parser.add_argument("new", type=Path, help="another")
    parser.add_argument("files", type=Path, nargs="+", help="snapshots")
    parser.add_argument("--words", action="store_true", help="list the words that differ as well")
    parser.add_argument("--no-whatif", action="store_true", help="without replays: faster, and blind to them")
    parser.add_argument("--jobs", type=int, default=2, help="how many reports are made at once (default: %(default)s)")
    return parser.parse_args(words)


def shown(differences: Sequence[Difference], words: bool) -> Iterator[str]:
    """The lines about one file."""
    for one in differences:
        if one.kind == "figure":
            yield f"  {one}"
    added = Counter(re.sub(r"\[\d+\]", "[]", one.path) for one in differences if one.kind == "added")
    yield from (f"  new: {path} ({count} times)" for path, count in sorted(added.items()))
    said = sorted((one for one in differences if one.kind == "word"), key=lambda one: not one.changes_a_number)
    if words:
        yield from (f"  {'words, another number' if one.changes_a_number else 'words'}: {one}" for one in said)
    elif said:
        numbers = sum(one.changes_a_number for one in said)
        yield f"  {len(said)} words differ, {numbers} of them in a number"


def main(words: Sequence[str] | None = None) -> int:
    """Compare, and say how it went."""
    asked = arguments(words)
    options = ["--no-whatif"] if asked.no_whatif else ["--whatif-seconds", SECONDS]
    files = [path.resolve() for path in asked.files]
    checkouts = asked.old.resolve(), asked.new.resolve()
    unequal = 0
    with ThreadPoolExecutor(asked.jobs) as pool:
        tasks = [[pool.submit(report, checkout, path, options) for checkout in checkouts] for path in files]
        for path, pair in zip(files, tasks, strict=True):
            try:
                old, new = (task.result() for task in pair)
            except CannotRun as error:
                pool.shutdown(wait=False, cancel_futures=True)
                print(error, file=sys.stderr)
                return 2
            differences = list(compare(old, new))
            unequal += any(one.kind == "figure" for one in differences)
            lines = list(shown(differences, asked.words))
            if lines:
                print("\n".join([str(path), *lines]), flush=True)
    print(f"{len(files)} snapshots, {unequal or 'none'} with another figure")
    return int(unequal > 0)


if __name__ == "__main__":
    sys.exit(main())
