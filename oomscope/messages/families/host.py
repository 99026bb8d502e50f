"""Memory of the machine: the CPU allocator, numpy, Python, mapped files, /dev/shm."""

from __future__ import annotations

import re

from oomscope.messages.families.wording import Wording, with_figures
from oomscope.messages.figures import Figure
from oomscope.messages.records import Reading

ANCHORS = (
    b"allocate memory", b"not enough memory", b"memoryerror", b"unable to allocate", b"bad_alloc", b"bad allocation",
    b"paging file", b"bus error", b"shared memory", b"write to file </torch", b"posix_memalign",
    b"memory allocation of", b"malloc of size", b"dev/shm",
)  # fmt: skip

_GIB = 1 << 30


def _whole_gib(reading: Reading, match: re.Match[str]) -> Reading:
    """Old torch cut the size down to whole GiB."""
    if not match["whole"]:
        return reading
    count = int(match["whole"][:6])
    return with_figures(reading, {"requested": Figure(count * _GIB, count * _GIB, (count + 1) * _GIB)})


WORDINGS = (
    Wording(
        "host-ram",
        "host.refused",
        "cpuallocator:",
        r"""(?: Default)? CPUAllocator : (?: can't allocate memory | not enough memory) :?
            (?: you)? tried to allocate <requested:bytes> bytes \.?""",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "posix_memalign",
        r"\[ enforce fail at CPUAllocator\.cpp : \d+ \] \.? posix_memalign \( .{1,40}? \) == 0 \.? (?: 12 vs 0)?",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "notenoughmemory:youtriedtoallocate",
        r"""(?: \$? Torch:)? not enough memory: you tried to allocate (?: <requested:bytes> bytes | <whole:count> GB)
            \.? (?: Buy new RAM !?)?""",
        finish=_whole_gib,
    ),
    Wording(
        "host-ram",
        "host.refused",
        "unabletommap",
        r"unable to mmap <requested:bytes> bytes from file \< .{1,300}? \> : Cannot allocate memory (?: \(12\))?",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "unabletoallocate",
        r"""Unable to allocate (?: array with shape \( [\d,]* \) and data type \w+ | <requested>
            (?: for an array with shape \( [\d,]* \) and data type [\w\<\>|]{1,20}?)?)""",
    ),
    Wording(
        "host-ram",
        "host.shared",
        "buserror",
        r"""DataLoader worker \( pid (?: \(s\))? [\d,]+ \) is killed by signal: Bus error
            (?: \.? It is possible that dataloader's workers are out of shared memory)?""",
    ),
    Wording(
        "host-ram",
        "host.shared",
        "sharedmemory",
        r"""Unexpected bus error encountered in worker .{0,120}? shared memory (?: \(shm\))?
          | insufficient shared memory \(shm\)
          | unable to allocate shared memory \(shm\) for file \< .{1,200}? \> :
            (?: Resource temporarily unavailable | Cannot allocate memory | No space left on device)""",
    ),
    Wording(
        "host-ram",
        "host.shared",
        "writetofile</torch",
        r"unable to write to file \< /torch_ [\w-]{1,80} \> (?: :? No space left on device (?: \(28\))?)?",
    ),
    Wording(
        "host-ram",
        "host.shared",
        "/dev/shm",  # noqa: S108 - nothing is written there
        r"No space left on device .{0,30}? /dev/shm | /dev/shm .{0,80}? (?: No space left on device | is full)",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "pagingfile",
        r"""(?: \[? WinError 1455 \]?)? The paging file is too small for this operation to complete
            (?: \.? \( os error 1455 \))?""",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "cannotallocatememory",
        r"""\[? Errno 12 \]? :? Cannot allocate memory
          | (?: OSError | fork | ENOMEM | mmap) .{0,60}? Cannot allocate memory""",
    ),
    Wording("host-ram", "host.refused", "mallocofsize", r"malloc of size <requested:bytes> failed"),
    Wording("host-ram", "host.refused", "memoryallocationof", r"memory allocation of <requested:bytes> bytes failed"),
    Wording(
        "host-ram", "host.refused", "bad_alloc|badalloc", r"std::bad_alloc (?!:out|:CUDA) | (?<![a-z_]) bad allocation"
    ),
    Wording(
        "host-ram",
        "host.refused",
        "memoryerror",
        r"(?<![\w.]) (?: _Array)? MemoryError (?! ['\w,)\]] | :std::bad_alloc:\w | :cu[A-Z])",
    ),
)
