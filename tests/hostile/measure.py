"""What each attack costs and how it ends: ``python -m tests.hostile.measure [PART OF A NAME]``, minutes; by hand.

Each file is read by a process of its own, which may use 8 GiB and a minute.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.hostile.catalogue import attacks

_SECONDS, _MEMORY = 60, 8 << 30


def outcome(data: bytes, folder: Path) -> tuple[str, float, int, str]:
    """How ``oomscope summary`` ends on `data`: kind, seconds, peak memory in MiB, and what it said."""
    path = folder / "attack.pickle"
    path.write_bytes(data)
    program = (
        "import resource, sys;"
        f"resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}));"
        "from oomscope.commands.common.errors import run;"
        "code = run(['summary', sys.argv[1]]);"
        "status = open('/proc/self/status').read().split('VmHWM:')[1].split()[0];"
        "print('PEAK', int(status) >> 10, file=sys.stderr); sys.exit(code)"
    )
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return "hang", float(_SECONDS), -1, ""
    seconds = time.perf_counter() - start
    lines = done.stderr.strip().splitlines()
    peak = int(lines.pop().split()[1]) if lines and lines[-1].startswith("PEAK") else -1
    said = " | ".join(lines)[:300]
    if "Traceback" in done.stderr:
        kind = "traceback"
    elif done.returncode < 0:
        kind = f"killed by signal {-done.returncode}"
    elif "this is a bug in oomscope" in said:
        kind = "bug"
    elif done.returncode == 0:
        kind = "report"
    elif done.returncode == 1 and len(lines) == 1:
        kind = "sentence"
    else:
        kind = f"exit {done.returncode}, {len(lines)} lines"
    return kind, seconds, peak, said


def main() -> None:
    """Run all attacks, or those whose name holds the argument; print what is not as it should be, and a summary."""
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    kinds: Counter[str] = Counter()
    slowest, largest = (0.0, ""), (0, "")
    with tempfile.TemporaryDirectory() as folder:
        for name, data in attacks():
            if part not in name:
                continue
            kind, seconds, peak, said = outcome(data, Path(folder))
            kinds[kind] += 1
            slowest, largest = max(slowest, (seconds, name)), max(largest, (peak, name))
            if kind not in ("report", "sentence") or seconds > 5 or peak > 1024 or part:
                print(f"{kind:10} {seconds:6.1f} s {peak:6} MiB  {name}: {said[:200]}", flush=True)
    print(dict(kinds), "slowest", slowest, "largest", largest)


if __name__ == "__main__":
    main()
