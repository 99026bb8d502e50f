"""Page-locked host memory: what copies to and from a card go through."""

from __future__ import annotations

from oomscope.messages.families.wording import Wording

ANCHORS = (
    b"failed to alloc ",
    b"pinned host memory",
    b"of pinned memory",
    b"pinned memory",
    b"pinned system memory",
    b"cudaallocmapped",
    b"cuda_host_mem",
    b"hostalloc",
    b"hostregister",
    b"mallochost",
    b"hostmalloc",
    b"allochost",
)

GOES_ON = "pinned.ggml"
"""ggml then takes ordinary memory, as llama.cpp and those that are built on it."""

_CALL = r"(?: cuda | hip | cuMem) (?: HostAlloc | MallocHost | HostMalloc | HostRegister | AllocHost) \w{0,20}"

WORDINGS = (
    Wording(
        "pinned-host",
        "pinned.refused",
        "bytesonhost",
        r"""failed to alloc (?: ate)? <requested:bytes> bytes on host
            (?: :? CUDA_ERROR_OUT_OF_MEMORY (?: : out of memory)? )?""",
    ),
    Wording(
        "pinned-host",
        "pinned.refused",
        "pinnedhostmemory",
        r"could not allocate pinned host memory of size: <requested:bytes>",
    ),
    Wording(
        "pinned-host",
        "pinned.refused",
        "pinnedmemory|pinnedsystemmemory",
        r"Failed to (?: allocate | register) pinned (?: system | host)? memory",
    ),
    Wording(
        "pinned-host",
        "pinned.refused",
        "pinnedmemory(",
        r"""pinned memory \( <requested:bytes> bytes \) could not be allocated
            (?: .{0,120}? original error was: cudaErrorMemoryAllocation (?: : out of memory)? )?""",
    ),
    Wording(
        "pinned-host", "pinned.refused", "cudaallocmapped", r"cudaAllocMapped (?: \( \) )? failed to allocate memory"
    ),
    Wording(
        "pinned-host",
        GOES_ON,
        "pinnedmemory",
        r"failed to allocate <requested> of pinned memory :? (?: out of memory | invalid argument)?",
    ),
    Wording("pinned-host", "pinned.refused", "cannotallocate", rf"{_CALL} cannot allocate <requested:bytes> bytes"),
    Wording(
        "pinned-host",
        "pinned.refused",
        "failedtopin|failedtoallocate",
        rf"{_CALL} failed to (?: pin | allocate) <requested>",
    ),
    Wording("pinned-host", "pinned.refused", "cuda_host_mem", r"cuda_host_mem\.cpp [^;]{0,80}? out of memory"),
    Wording(
        "pinned-host",
        "pinned.refused",
        "hostalloc|mallochost|hostmalloc|hostregister|allochost",
        rf"""{_CALL} .{{0,60}}? (?: out of memory | OUT_OF_MEMORY | MemoryAllocation) | out of memory .{{0,40}}? {_CALL}
          | {_CALL} (?<! IoMemory) [`'")]{{0,3}} (?: has)? fail (?: ed | s) (?: : OS call failed)?
          | fail (?: ed | s | ure) (?: on | in | at | of) [`'"]? {_CALL}""",
    ),
)
