"""What another program's own allocator, heap or check says, with its own figures or limit; or no shortage at all."""

from __future__ import annotations

import re

from oomscope.messages.families.wording import Wording, with_figures
from oomscope.messages.figures import exact
from oomscope.messages.records import Reading

ANCHORS = (
    b"out of memory", b"outofmemory", b"for requested buffer", b"onnxruntime::bfcarena", b"failed to allocate memory",
    b"allocation failed for size", b"large alloc",
    b"resources requested for launch", b"cudasuccess: cuda", b"cudasuccess:cuda",
    b"maximum allowed buffer size", b"memory isn't enough", b"out of gpu memory", b"memory on device",
    b"enough space in the", b"available failed", b"memory is insufficient", b"memory limit", b"max size of memory",
    b"rmm failure", b"rmm allocated", b"maximum pool size", b"size exceeds device", b"::malloc] resource limit",
    b"sufficient workspace memory", b"not enough memory for", b"data of size", b"dispatched on the cpu",
    b"worker memory limit", b"instead of /dev/shm", b"than total mem size",
    b"gpu free memory is", b"max working set size", b"insufficient workspace",
    b"smaller than requested bytes", b"allowed memory size",
)  # fmt: skip


def _with_commas(reading: Reading, match: re.Match[str]) -> Reading:
    """CuPy prints bytes in groups of three."""
    printed = match.group("wanted", "had", "most")
    wanted, had, most = (exact(int(text.replace(",", "")[:18])) if text else None for text in printed)
    return with_figures(reading, {"requested": wanted, "allocated": had, "allowed": most})


_PROGRAMS = {
    "Node.js": re.compile(r"JavaScriptheap", re.IGNORECASE),
    "PHP": re.compile(r"Allowedmemorysizeof\d+bytes"),
    "Java": re.compile(r"OutOfMemoryError:Javaheap"),
    "ONNX Runtime": re.compile(r"onnxruntime|ONNXRuntimeError|Failedtoallocatememoryforrequestedbuffer"),
    "PaddlePaddle": re.compile(r"OutofmemoryerroronGPU|Paddle"),
    "CuPy": re.compile(r"Outofmemoryallocating.{1,40}bytes\(allocatedsofar|cupy", re.IGNORECASE),
    "CUDA.jl": re.compile(r"OutofGPUmemorytrying"),
    "RAPIDS (RMM)": re.compile(r"\bRMM\b|RMMallocated"),
}
"""Who speaks, by words in a text without blanks that only one program has."""


def program_of(packed: str) -> str | None:
    """The program or library whose message `packed` is, which has no blanks; None where that is not known."""
    return next((name for name, words in _PROGRAMS.items() if words.search(packed)), None)


SERVED = "other.served"
"""tcmalloc tells of large requests, and serves them."""
POOL_OF_CONTEXT = "other.pool_of_context"
"""ggml prints what its pool would have to hold, and how large that is."""

WORDINGS = (
    Wording(
        "other",
        POOL_OF_CONTEXT,
        "enoughspaceinthe",
        r"not enough space in the context's memory pool \( needed <requested:bytes> , available <free:bytes> \)",
    ),
    Wording(
        "other",
        "other.program",
        "largestfreeblock",
        r"""Out of memory error on GPU (?P<device>\d+) \. Cannot allocate <requested:letter> memory \.
            Memory pool state: [^:]{1,80}? Paddle memory state: allocated= <allocated:letter> ,
            reserved= <reserved:letter> \. GPU memory state: available= <free:letter> , total= <total:letter>""",
    ),
    Wording(
        "other",
        "other.program",
        "outofmemoryerrorongpu",
        r"""Out of memory error on GPU (?P<device>\d+)
            (?: \. Cannot allocate <requested:letter>
                (?: (?: GPU)? memory (?: on GPU \d+)? , (?: <allocated:letter> memory has been allocated
                    (?: \( actual using allocated memory [\d.]{1,20} [KMG]?B \) )? and)?
                    available memory is (?: only)? <free:letter> )? )?""",
    ),
    Wording(
        "other",
        "other.program",
        "outofmemoryallocating",
        r"""Out of memory allocating (?P<wanted> [\d,]+) bytes
            (?: \( allocated so far: (?P<had> [\d,]+) bytes (?: , limit set to: (?P<most> [\d,]+) bytes)? )?""",
        finish=_with_commas,
    ),
    Wording("other", "other.program", "memorytoallocate", r"out of memory to allocate <requested:bytes> bytes"),
    Wording(
        "other",
        "other.program",
        "requestedbuffer",
        r"Failed to allocate memory for requested buffer of size <requested:bytes>",
    ),
    Wording("other", "other.program", "bfcarena::", r"onnxruntime::BFCArena:: \w{1,40} .{0,160}? Failed to alloc"),
    Wording(
        "other",
        "other.program",
        "withsize",
        r"Failed to allocate memory for \w{1,60} with size <requested:bytes> and alignment",
    ),
    Wording(
        "other",
        "other.program",
        "allocationfailedforsize",
        r"PT_DEVMEM (?P<fatal> Allocation failed) for size:: <requested:bytes>",
    ),
    Wording(
        "other",
        "other.program",
        "memoryfordefragment",
        r"PT_DEVMEM OOM: (?P<fatal> No enough memory for defragment)",
    ),
    Wording(
        "other",
        "other.program",
        "allowedmemorysize",
        r"""Allowed memory size of <allowed:bytes> bytes exhausted
            (?: .{0,40}? \(tried to allocate <requested:bytes> bytes)?""",
    ),
    Wording("other", SERVED, "largealloc", r"tcmalloc: large alloc <requested:bytes> bytes"),
    Wording(
        "other",
        "other.one_piece",
        "maxsizeofmemory",
        r"""Exceeded max size of memory object allocation: requested <requested:bytes> bytes,
            but max alloc size supported by device is <allowed:bytes> bytes""",
    ),
    Wording(
        "other",
        "other.one_piece",
        "maximumallowedbuffersize",
        r"""Attempting to allocate <requested:bytes> bytes which is greater than the maximum allowed buffer size of
            <allowed:bytes> bytes""",
    ),
    Wording(
        "other",
        "other.one_piece",
        "exceedsdevice",
        r"(?: buffer | allocation | tensor) size exceeds device [a-z]{4,30} limit (?! :? [A-Za-z]* OutOf)",
    ),
    Wording("other", "other.program", "::malloc]resourcelimit", r"\[metal::malloc\] Resource limit \( \d+ \) exceeded"),
    Wording(
        "other",
        "other.program",
        "availablefailed",
        r"enforce allocating <= available failed, <requested:bytes> > <free:bytes>",
    ),
    Wording(
        "other",
        "other.program",
        "totalmemsize",
        r"""(?: TotalUsedMemStatistics: <allocated:bytes> .{0,160}? )? alloc size: <requested:bytes> is more than total
            mem size: <total:bytes>""",
    ),
    Wording(
        "other",
        "other.program",
        "memoryisn'tenough",
        r"""Device \(id: (?P<device>\d+) \) memory isn't enough and alloc failed .{0,160}?
            alloc size: <requested:letter>""",
    ),
    Wording(
        "other",
        "other.program",
        "memoryisn'tenough",
        r"Malloc for kernel (?: input | output | workspace) failed ,? Memory isn't enough",
    ),
    Wording(
        "other",
        "other.program",
        "outofmemoryondevice",
        r"Out of memory on device \.? (?: You requested: <requested> , device has <free> free)?",
    ),
    Wording(
        "other",
        "other.program",
        "enoughspaceinthe",
        r"""not enough space in the buffer
            \( needed <requested:bytes> , (?: largest block)? available <free:bytes> \)""",
    ),
    Wording(
        "other",
        "other.warning",
        "insufficienttousetactic",
        r"Tactic Device request: <requested> Available: <free> \.? Device memory is insufficient to use tactic",
    ),
    Wording(
        "other",
        "other.program",
        "requested",
        r"out of memory \. Requested <requested:bare> ; Free <free:bare>",
        unit="MiB",
    ),
    Wording(
        "other",
        "other.program",
        "needatleast",
        r"not enough memory for [\w-]{1,40} : <free:bare> available , need at least <requested:bare>",
        unit="MiB",
    ),
    Wording(
        "other",
        "other.program",
        "dataofsize",
        r"failed to allocate data of size <requested> \( <allocated> / <allowed> used \)",
    ),
    Wording(
        "other",
        "other.warning",
        "workermemorylimit",
        r"""(?: Worker is at \d{1,3} % memory usage | memory use is high) .{0,300}? memory: <process_in_use>
            -- Worker memory limit: <allowed>""",
    ),
    Wording(
        "other",
        "other.warning",
        "maxworkingsetsize",
        r"""(?: allocated buffer, size = <requested:bare> , \( <allocated:number> / <allowed:number> \) .{0,120}? )?
            current allocated size is greater than the recommended max working set size""",
        unit="MiB",
    ),
    Wording(
        "other",
        "other.program",
        "insufficientworkspace",
        r"Could not find any implementation for node .{1,240}? due to insufficient workspace",
    ),
    Wording(
        "other",
        "other.program",
        "smallerthanrequested",
        r"Available memory of <free:bytes> is smaller than requested bytes of <requested:bytes>",
    ),
    Wording("other", "other.warning", "gpufreememoryis", r"current GPU free memory is <free>"),
    Wording(
        "other",
        "other.warning",
        "insteadof/dev/shm",
        r"object store is using .{1,60}? instead of /dev/shm because /dev/shm has only <free:bytes> bytes available",
    ),
    Wording(
        "other",
        "other.warning",
        "sufficientworkspacememory",
        r"tactics? do (?: es)? not have sufficient workspace memory (?: to run)?",
    ),
    Wording(
        "other",
        "other.warning",
        "closetoitsmemorylimit",
        r"close to its memory limit (?: .{0,120}? Currently, [\d.]+ GB / <total> is being used)?",
    ),
    Wording(
        "other",
        "other.program",
        "enoughspacetoallocate",
        r"Out of Memory: Not enough space to allocate <requested:bytes> B \w{1,20}? buffer",
    ),
    Wording(
        "other",
        "other.program",
        "outofgpumemorytrying",
        r"""Out of GPU memory trying to allocate <requested>
            .{0,20}? GPU memory usage: [\d.]+% \( [\d.]+ (?: [KMG]iB | bytes) / <total> \)
            (?: Memory pool usage: <allocated> \( <reserved> reserved \)
                (?: Memory limit: (?: soft= [\d.]+ [KMG]iB ,?)? (?: hard= <allowed>)? )? )?""",
    ),
    Wording(
        "other",
        "other.pool",
        "rmmfailure",
        r"""(?: std::bad_alloc: (?: out_of_memory:)?)? RMM failure at: .{1,160}? exceeded
            (?: \( failed to allocate <requested> \) )?""",
    ),
    Wording(
        "other",
        "other.program",
        "totalrmmallocated",
        r"""(?: unable to allocate | allocation of) <requested:bytes> bytes (?: failed , [^.]{0,60}?)? \.
            Total RMM allocated is <allocated:bytes> bytes""",
    ),
    Wording("other", "other.pool", "maximumpoolsizeexceeded", r"(?<! \d: ) Maximum pool size exceeded"),
    Wording("other", "other.program", "allocatoroutofmemory", r"\w{2,30} allocator (?: is | ran)? out of memory"),
    Wording("other", "other.planned", "dispatchedonthecpu", r"Some modules are dispatched on the CPU or the disk"),
    Wording("other", "other.program", "heapoutofmemory", r"JavaScript heap out of memory"),
    Wording("other", "other.program", "javaheap", r"OutOfMemoryError: Java heap space"),
    Wording("other", "other.unreadable", "cudasuccess:cuda", r"== cudaSuccess: CUDA: (?!out) \w+"),
    Wording("other", "other.launch", "resourcesrequestedforlaunch", r"too many resources requested for launch"),
)
