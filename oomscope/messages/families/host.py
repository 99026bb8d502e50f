"""Memory of the machine: the CPU allocator, numpy, Python, mapped files, /dev/shm."""

from __future__ import annotations

import math
import re

from oomscope.messages.families.wording import Wording, with_figures
from oomscope.messages.figures import Figure, exact, parse_figure
from oomscope.messages.records import Reading
from oomscope.messages.unwrap import ALONE

ANCHORS = (
    b"allocate memory", b"not enough memory", b"failed to allocate", b"out of memory", b"memoryerror",
    b"unable to allocate", b"bad_alloc", b"bad allocation", b"paging file", b"winerror 1455", b"bus error",
    b"shared memory", b"write to file </torch", b"cpuallocator.cpp", b"memory allocation of", b"malloc of size",
    b"dev/shm", b"allocate vector", b"object store is full", b"objectstorefull", b"page allocation failure",
    b"bytes are available", b"no space left on device",
    b"enough resource: memory",
    b"% of the memory on node", b"out_of_host_memory", b"failed to mlock", b"out of host memory", b"cpu outofmemory",
    b"cpu out of memory", b"cpuretryoom", b"cpusplitandretryoom", b"commit_memory(", b"native memory allocation",
)  # fmt: skip

_GIB = 1 << 30


def _whole_gib(reading: Reading, match: re.Match[str]) -> Reading:
    """Old torch cut the size down to whole GiB."""
    if not match["whole"]:
        return reading
    count = int(match["whole"][:6])
    return with_figures(reading, {"requested": Figure(count * _GIB, count * _GIB, (count + 1) * _GIB)})


def _mapped(reading: Reading, match: re.Match[str]) -> Reading:
    return with_figures(reading, {"requested": parse_figure(match["mapped"])}) if match["mapped"] else reading


_ITEM = re.compile(r"(?:u?int|float|complex)(\d+)\Z|bool\Z")


def _of_shape(reading: Reading, match: re.Match[str]) -> Reading:
    """The first numpy that told of the array did not tell its size: that is its shape's."""
    item = _ITEM.match(match["type"])
    if "requested" in reading.figures or item is None:
        return reading
    counts = [int(one[:18]) for one in re.findall(r"\d+", match["shape"])]
    return with_figures(reading, {"requested": exact(math.prod(counts) * int(item[1] or 8) // 8)})


_NAMES_A_CARD = re.compile(r":\W{0,3}(?:Metal|CUDA|HIP|GPU|OpenCL|Vulkan|SYCL|device)", re.IGNORECASE)


def _unless_a_card(reading: Reading, match: re.Match[str]) -> Reading | None:
    """Python's exception for memory is raised for a card's as well; what follows it says so."""
    return None if _NAMES_A_CARD.match(match.string, match.end()) else reading


EXCEPTION = Wording(
    "host-ram",
    "host.plain",
    "memoryerror",
    rf"""(?: {ALONE} MemoryError | (?<![\w.{ALONE}-]) (?: _Array)? MemoryError (?! ['\w,)\]])
          | (?: get (?: s | ting)? | got | with | raise [sd]? | throws? | threw) an? (?-i: MemoryError)
          | (?: get (?: s | ting)? | got | with | hits?) (?-i: MemoryError) | (?-i: MemoryError) in Python)
        (?! :std::bad_alloc:\w | :cu[A-Z] | : .{{0,360}}? :CUDAerror)
        (?: : \W? (?: unable to | cannot | could not | failed to) allocate <requested>)?""",
    finish=_unless_a_card,
)
"""Python's own exception: of others that read a text, each says more."""

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
        "cpuallocator",
        r"""CPUAllocator : (?: can't allocate memory | not enough memory)
          | not enough memory :? (?: Default)? CPUAllocator""",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "posix_memalign",
        r"\[? enforce fail at CPUAllocator\.cpp : \d+ \] \.? posix_memalign \( .{1,40}? \) == 0 \.? (?: 12 vs 0)?",
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
        r"""Unable to allocate (?: <requested> for (?: an)? array with (?: shape | form) | array with shape)
            (?P<shape> \( [\d,]* \) )
            and data type (?P<type> u?int\d{1,2} | float\d{2,3} | complex\d{2,3} | bool | object | [\<|>] \w{1,4})""",
        finish=_of_shape,
    ),
    Wording(
        "host-ram",
        "host.refused",
        "foranarray",
        r"Unable to allocate (?: <requested> | [\w.]{1,12}) for (?: an)? array with shape",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "commit_memory(|nativememoryallocation",
        r"""os::commit_memory \( 0x [\da-f]{1,16} , <requested:bytes> , \d \) failed
          | Native memory allocation \( \w{3,10} \) failed to (?: map | allocate) (?P<mapped>\d{1,20}) bytes""",
        finish=_mapped,
    ),
    Wording(
        "host-ram",
        "host.said",
        "cpuoutofmemory|retryoom",
        r"""Cpu (?: SplitAnd)? RetryOOM (?: : CPU OutOfMemory)?
          | (?<! [a-z]) CPU (?: is | ran)? out of memory (?! error)""",
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
          | insufficient shared memory \(shm\) | dataloader's workers are out of shared memory
          | unable to open shared memory object \< .{1,200}? \> .{0,40}? :
            (?: Cannot allocate memory | No space left on device)
          | unable to allocate shared memory \(shm\) for file \< .{1,200}? \> :
            (?: Resource temporarily unavailable | Cannot allocate memory | No space left on device)""",
    ),
    Wording(
        "host-ram",
        "host.shared",
        "writetofile</torch",
        r"unable to write to file \< /torch_ [\w-]{1,80} \> (?: :? (?P<full> No space left on device) (?: \(28\))?)?",
    ),
    Wording(
        "host-ram",
        "host.shared",
        "/dev/shm",  # noqa: S108 - nothing is written there
        r"No space left on device .{0,30}? /dev/shm | /dev/shm .{0,80}? (?: No space left on device | is full)",
    ),
    Wording(
        "host-ram",
        "host.shared",
        "spaceleftondevice",
        r"""(?: SemLock | shared_memory\.py | SharedMemory | shm_open) .{0,300}? No space left on device""",
    ),
    Wording(
        "host-ram",
        "host.shared",
        "sharedmemorysegment",
        r"""(?: No space left on device | Error) (?: :? while)? creating shared memory segment (?! /dev/shm)""",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "pagingfile|winerror1455",
        r"""\[? WinError 1455 \]? (?: The paging file is too small for this operation to complete)?
          | The paging file is too small for this operation to complete (?: \.? \( os error 1455 \))?""",
    ),
    Wording(
        "host-ram",
        "host.locked",
        "tomlock",
        r"""failed to mlock <requested:bytes> -byte buffer (?: \( after previously locking \d+ bytes \) )?
            (?: : Cannot allocate memory)?""",
    ),
    Wording(
        "host-ram",
        "host.errno",
        "cannotallocatememory",
        r"(?: \[? Errno 12 \]? :?)? Cannot allocate memory (?! in static TLS)",
    ),
    Wording(
        "host-ram",
        "host.by_driver",
        "out_of_host_memory|outofhostmemory",
        r"(?: [A-Z]{2,12}_)+ OUT_OF_HOST_MEMORY | (?<! [a-z]) out of host memory",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "allocatevector",
        r"""cannot allocate vector of size <requested:letter>
            (?: .{0,160}? Reached total allocation of <allowed:letter>)?""",
    ),
    Wording("host-ram", "host.refused", "pageallocationfailure", r"page allocation failure: order: \d+"),
    Wording(
        "host-ram",
        "host.shared",
        "objectstoreisfull|objectstorefull",
        r"""(?: ObjectStoreFullError | object store is full)
            (?: .{0,160}? Object size is <requested:bytes> bytes)?""",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "insufficientmemory)",
        r"\( -4: Insufficient memory \) Failed to allocate <requested:bytes> bytes",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "bytesareavailable",
        r"needs (?: about)? <requested:bytes> bytes but only <free:bytes> bytes are available",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "enoughresource:memory",
        r"""Node did n''?t have enough resource: memory, requested: <requested:bytes> , used: \d{1,20} ,
            capacity: <total:bytes>""",
    ),
    Wording(
        "host-ram",
        "host.refused",
        "ofthememoryonnode",
        r"More than \d{1,3}% of the memory on node .{1,80}? is used \( [\d.]{1,12} / <total:any> \)",
    ),
    Wording("host-ram", "host.refused", "cerror:outofmemory", r"C error: out of memory"),
    Wording(
        "host-ram",
        "host.refused",
        "runtime:outofmemory",
        r"error: runtime: out of memory | runtime: out of memory: cannot allocate <requested:bytes> -byte block",
    ),
    Wording("host-ram", "host.refused", "notenoughmemoryresources", r"Not enough memory resources are available"),
    Wording(
        "host-ram",
        "host.refused",
        "cpubuffer|cpu_buffer_type_alloc_buffer",
        r"""failed to allocate (?: CPU | (?<= cpu_buffer_type_alloc_buffer:failedtoallocate)) buffer of size
            <requested:bytes>""",
    ),
    Wording("host-ram", "host.refused", "(attemptedto", r"insufficient memory \( attempted to allocate <requested> \)"),
    Wording(
        "host-ram",
        "host.refused",
        "(badallocation)",
        r"Failed to allocate block of <requested:bytes> bytes \( bad allocation \)",
    ),
    Wording("host-ram", "host.refused", "mallocofsize", r"malloc of size <requested:bytes> failed"),
    Wording("host-ram", "host.refused", "memoryallocationof", r"memory allocation of <requested:bytes> bytes failed"),
    Wording(
        "host-ram",
        "host.plain",
        "bad_alloc|badalloc",
        r"std::bad_alloc (?! .{0,20}? (?: cuda | out_of | rmm)) | (?<![a-z_]) bad allocation",
    ),
)
