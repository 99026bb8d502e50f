"""NCCL and RCCL, which take device memory of their own."""

from __future__ import annotations

import re
from dataclasses import replace

from oomscope.messages.families.wording import Wording, with_figures
from oomscope.messages.figures import parse_figure
from oomscope.messages.records import Reading

ANCHORS = (
    b"failed to cuda", b"failed to hip", b"unhandled cuda error", b"unhandledcudaerror", b"dev/shm",
    b"out of memory", b"out-of-memory",
)  # fmt: skip

_BEFORE = r"(?: \[ (?P<device>\d{1,3}) \] (?: [\w./-]{1,200} : \d+ | \w{1,40})? )? (?: NCCL | RCCL | (?<= \d)) WARN"
"""``[3]`` is the local device of the process, and no rank. NCCL 2.0 and 2.1 tell a file and a line, and no name."""


def _sized(reading: Reading, match: re.Match[str]) -> Reading:
    return with_figures(reading, {"requested": parse_figure(match["size"])}) if match["size"] else reading


def _by_reason(reading: Reading, match: re.Match[str]) -> Reading:
    """Where the call's own error is told, and it is not the one for memory, none was short."""
    return replace(reading, wording=OTHER_REASON) if match["why"] else reading


OTHER_REASON = "nccl.other_reason"
WORDINGS = (
    # In capitals: what others say of a failed ``cudaMalloc`` differs by nothing else once blanks are left out.
    Wording(
        "nccl",
        "nccl.refused",
        "failedtocuda|failedtohip",
        rf"""(?: {_BEFORE} )? Failed to (?-i: CUDA | HIP) (?: host)? (?-i: calloc | alloc | malloc) (?: async)?
            <requested:bytes> bytes""",
    ),
    Wording(
        "nccl",
        "nccl.refused",
        "cudafailure|hipfailure",
        rf"(?: {_BEFORE} | Last error: ) (?: Cuda | HIP) failure :? (?: \d+)? :? '? out of memory '?",
    ),
    Wording(
        "nccl",
        "nccl.refused",
        "outofmemory|out-of-memory",
        r"(?: NCCL | RCCL) (?: CUDA)? (?: ran)? out -? of -? memory",
    ),
    Wording(
        "nccl",
        "nccl.refused",
        "unhandledcudaerror",
        r"(?: nccl UnhandledCudaError | unhandled cuda error) .{0,400}? out of memory",
    ),
    Wording(
        "host-ram",
        "host.shared",
        "shm/nccl",
        rf"""(?: {_BEFORE} (?: Error :? | while)*)?
            (?: creating shared memory segment | failed to extend) /dev/shm/nccl [\w-]{{0,40}}?
            (?: to <requested:bytes> bytes | \( size (?P<size>\d{{1,18}}) \) | (?! [\w-]))""",
        finish=_sized,
    ),
    Wording(
        "host-ram",
        "host.errno",
        "calltoibv_",
        rf"{_BEFORE} Call to ibv_ \w{{1,40}} failed with error Cannot allocate memory",
    ),
    Wording(
        "nccl",
        "nccl.unhandled",
        "unhandledcudaerror",
        r"""(?: unhandled cuda error | nccl UnhandledCudaError)
            (?: , NCCL version [\d.]{3,12}? Process Group destroyed on rank (?P<rank>\d+))?
            (?: (?= .{0,240}? (?: Cuda | HIP) failure :? \d{0,4} :? ' (?P<why> (?! out of memory) [^']{1,60} ) ) )?""",
        finish=_by_reason,
    ),
)
