"""Run the tests under every Python that is found on this machine: ``make matrix``, or ``python tests/matrix.py``.

Each release has a virtual environment of its own, ``.venv-3.10`` and so on, which is kept for the next time. What
follows on the command line is handed to pytest.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

OLDEST, NEWEST = (3, 10), (3, 14)
"""The releases that are asked for by name; a newer one is run as well where it is found."""

NAME = re.compile(r"python3\.\d+")
KEEPERS = (("pyenv", "root"), ("uv", "python", "dir"))
"""Tools that keep interpreters which need not be on PATH, and how each is asked where."""

VERSION = "import sys, ensurepip; print(*sys.version_info[:2])"
Version = tuple[int, int]


def candidates() -> Iterator[Path]:
    """What may be an interpreter: on PATH first, then what pyenv and uv keep."""
    for folder in os.get_exec_path():
        yield from (path for path in sorted(Path(folder).glob("python3.*")) if NAME.fullmatch(path.name))
    for command in KEEPERS:
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            kept = Path(done.stdout.strip())
            if done.returncode == 0 and kept.is_dir():
                yield from sorted([*kept.glob("*/bin/python3"), *kept.glob("versions/*/bin/python3")])
    yield Path(sys.executable)


def version_of(python: Path) -> Version | None:
    """Its release; None where it does not start (as pyenv's shims for another version) or cannot make environments."""
    try:
        done = subprocess.run([python, "-c", VERSION], capture_output=True, text=True, timeout=60, check=False)
        major, minor = map(int, done.stdout.split())
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return (major, minor)


def interpreters(paths: Iterable[Path]) -> dict[Version, Path]:
    """The first of `paths` for each release that is new enough, oldest release first."""
    found: dict[Version, Path] = {}
    for path in paths:
        version = version_of(path)
        if version and version >= OLDEST:
            found.setdefault(version, path)
    return dict(sorted(found.items()))


def run(version: Version, python: Path, arguments: list[str]) -> bool:
    """Run the tests under `python`; whether they passed."""
    name = ".".join(map(str, version))
    print(f"Python {name}: {python}", flush=True)
    command = ["make", "test", f"VENV=.venv-{name}", f"PYTHON={python}", f"ARGS={shlex.join(arguments)}"]
    return subprocess.run(command, cwd=Path(__file__).resolve().parents[1], check=False).returncode == 0


def main(arguments: list[str]) -> int:
    """Run every release, then say of each how it went; 1 where one failed or none was found."""
    found = interpreters(candidates())
    asked = sorted({*found, *((3, minor) for minor in range(OLDEST[1], NEWEST[1] + 1))})
    lines = []
    failed = not found
    for version in asked:
        name = ".".join(map(str, version))
        if version not in found:
            lines.append(f"Python {name}: not found")
            continue
        start = time.monotonic()
        passed = run(version, found[version], arguments)
        failed |= not passed
        lines.append(f"Python {name}: {'passed' if passed else 'FAILED'} in {time.monotonic() - start:.0f} s")
    print("\n".join(lines))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
