"""What a dump tells on the spot: why the request failed, who holds the memory, and where to read on."""

from __future__ import annotations

import atexit
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oomscope.recording.dump import Dump, tell_problems
from oomscope.recording.options import Options
from oomscope.recording.saying import say
from oomscope.units import format_bytes

_HOLDERS_SHOWN = 3
_WAIT_AT_EXIT = 60.0
_reports: list[subprocess.Popen[bytes]] = []


def tell_oom(dump: Dump, options: Options) -> None:
    """Three lines on stderr: the verdict, the top holders, the file and the command that opens it."""
    tell_problems(dump)
    headline = _verdict(dump.path, options.verdict) if dump.form == "full" else None
    say(headline or plain_words(dump.key))
    holders = top_holders(dump.key)
    if holders:
        say(f"held by {holders}")
    tell_file(dump)


def tell_file(dump: Dump) -> None:
    """Where the dump is."""
    if dump.path is None:
        return
    walk = dump.key.get("walk") or {}
    took = f"{dump.seconds:.1f} s" + (f", {walk['seconds']:.1f} s of it for names" if "seconds" in walk else "")
    size = format_bytes(dump.path.stat().st_size)
    say(f"{dump.path} ({size}, {took}); read it with: oomscope report {shlex.quote(str(dump.path))}")


def top_holders(key: Mapping[str, Any]) -> str:
    """``train: total_loss 61.2 GiB, model (parameters) 4.10 GiB``, with what the rest comes to."""
    request = key.get("request") or {}
    rows = [row for row in key.get("holders", []) if request.get("device") in (None, row["device"])]
    named = [row for row in rows if row["holder"]][:_HOLDERS_SHOWN]
    words = [f"{_holder_words(row)} {format_bytes(row['bytes'])}" for row in named]
    rest = sum(row["bytes"] for row in rows) - sum(row["bytes"] for row in named)
    if words and rest > 0:
        words.append(f"others {format_bytes(rest)}")
    return ", ".join(words)


_KINDS = {
    "parameter": "parameters",
    "gradient": "gradients",
    "buffer": "buffers",
    "optimizer_state": "state",
    "graph": "graph",
}


def _holder_words(row: Mapping[str, Any]) -> str:
    kind = _KINDS.get(row["kind"])
    return f"{row['holder']} ({kind})" if kind else str(row["holder"])


def plain_words(key: Mapping[str, Any]) -> str:
    """The numbers without a verdict, for when no analysis could be had."""
    request = key.get("request")
    if not request:
        return (key.get("exception") or {}).get("message", "").partition("\n")[0].strip() or "CUDA out of memory"
    device, asked, free = request["device"], format_bytes(request["alloc_size"]), format_bytes(request["device_free"])
    facts: Mapping[str, Any] = next((item for item in key.get("devices", []) if item["device"] == device), {})
    stats = facts.get("memory_stats") or {}
    total = format_bytes(facts.get("total") or request["limit_or_total"])
    words = f"CUDA out of memory on device {device}: {asked} asked for, {free} free of {total}"
    if "allocated_bytes.all.current" in stats:
        words += (
            f"; this process has {format_bytes(stats['allocated_bytes.all.current'])} allocated"
            f" and {format_bytes(stats['reserved_bytes.all.current'])} reserved"
        )
    return words


def environment_without_gpu() -> dict[str, str]:
    """This environment for a helper process: it sees no device, and is not itself recorded."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OOMSCOPE_")}
    # The package may have been found by the current folder alone.
    home = str(Path(__file__).resolve().parents[2])
    paths = [home, *environment.get("PYTHONPATH", "").split(os.pathsep)]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    environment["CUDA_VISIBLE_DEVICES"] = ""
    return environment


def _verdict(path: Path | None, seconds: float) -> str | None:
    """The analysis' headline, by a process of its own: it can be ended, and what it imports is not in the job's way."""
    if path is None or seconds <= 0 or not sys.executable:
        return None
    command = [sys.executable, "-m", "oomscope.recording.verdict", str(path)]
    try:
        done = subprocess.run(
            command, env=environment_without_gpu(), capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
        headline = json.loads(done.stdout)["headline"] if done.returncode == 0 else None
    except Exception:
        return None
    return str(headline) if headline else None


def start_report(path: Path) -> None:
    """Have the HTML report made beside the dump, by a process that outlives this one's trouble."""
    if not sys.executable:
        return
    target = path.with_suffix(".html")
    command = [sys.executable, "-m", "oomscope", "report", str(path), "-o", str(target)]
    try:
        helper = subprocess.Popen(
            command,
            env=environment_without_gpu(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as problem:
        say(f"the report could not be started: {problem}")
        return
    if not _reports:
        atexit.register(_wait_for_reports)
    _reports.append(helper)
    say(f"a report is being made: {target}")


def _wait_for_reports() -> None:
    """A container ends with its first process, and would take the report with it."""
    for helper in _reports:
        try:
            helper.wait(_WAIT_AT_EXIT)
        except subprocess.TimeoutExpired:
            say("the report is not ready yet; leaving it")
