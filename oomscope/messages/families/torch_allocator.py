"""PyTorch's caching allocators, from torch 0.2 to today: CUDA, ROCm, XPU and NPU."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from oomscope.messages.families.wording import Wording, compiled, with_figures
from oomscope.messages.figures import Figure, parse_figure
from oomscope.messages.records import Reading

ANCHORS = (
    b"out of memory",
    b"tried to allocate",
    b"already allocated",
    b"allocated by pytorch",
    b"non-pytorch memory",
    b"out of device memory",
    b"out of the memory",
    b"nvml_success ==",
    b"failed with oom",
)

_BACKENDS = {
    "CUDA": "torch-cuda",
    "GPU": "torch-cuda",
    "HIP": "torch-hip",
    "XPU": "torch-xpu",
    "DPCPP": "torch-xpu",
    "NPU": "torch-npu",
}
_LONGEST = 4_000
"""Characters after the head; a card that many processes share makes the longest message."""

_CLAUSES = {
    "total": compiled(r"<a>total (?: capac | ;) | total capaci?ty of <b>"),
    "free": compiled(r"<a>free | of which <b>(?: is free | i?s? \Z)"),
    "allocated": compiled(r"<a>already allocated | Of the allocated memory <b>is allocated by PyTorch"),
    "allowed": compiled(r"<a>allowed"),
    "process_in_use": compiled(r"this process has <a>(?: memory in use | (?: memory)? \Z)"),
    "private_pools": compiled(r"<a>allocated in private pools"),
    "unallocated": compiled(r"<a>is reserve (?: d by PyTorch but unallocated | [a-z]{0,24} \Z) | <b>cached"),
    "in_total": compiled(r"<a>reserved in total by PyTorch"),
}
_NAMED = compiled(r"(?<!his) Process \d+ has <a>memory in use")
_DEVICE = re.compile(r"(?:GPU|NPU|XPU|MUSA|MLU|GCU|SDAA)(?:(\d+)(?:;|has)|([\x00-\x1f])has)", re.IGNORECASE)
_ANY_HEAD = re.compile(r"outofmemory", re.IGNORECASE)
_ENGINE_GOES_ON = re.compile(r"(?:!|\.)?(?:occurred)?when(?:warmingup|capturing)", re.IGNORECASE)
_OLD = re.compile(r"cached|reservedintotalbyPyTorch")
"""Until torch 2.0; torch_npu keeps the words."""
_ADVICE = {
    "max_split_size_mb": "max_split_size_mb",
    "expandable_segments:True": "expandable_segments",
    "empty_cache": "empty_cache",
}
_ADVICE_WITHIN = 400


def _with_clauses(reading: Reading, match: re.Match[str]) -> Reading | None:
    """All that stands after the head, in whatever order releases of torch put it."""
    if _ENGINE_GOES_ON.match(match.string, match.end()):
        return None
    text, stop = match.string, _next_head(match.string, match.end())
    clauses = [(name, clause) for name, one in _CLAUSES.items() if (clause := one.search(text, match.end(), stop))]
    named = list(_NAMED.finditer(text, match.end(), stop))
    end = max([match.end(), *(clause.end() for _, clause in clauses), *(one.end() for one in named)])
    found = {name: parse_figure(clause[clause.lastgroup or 0]) for name, clause in clauses}
    printed, unallocated = _reserved(found)
    figures = with_figures(reading, printed).figures
    others = _others(figures, [parse_figure(one["a"]) for one in named], mine="process_in_use" in found)
    advice = text[end : min(end + _ADVICE_WITHIN, _next_head(text, end))]
    return replace(
        with_figures(replace(reading, figures=figures), others),
        kind=_BACKENDS.get((match["backend"] or "CUDA").upper(), "other"),
        end=end,
        device=_device(text, match.end(), min(stop, match.end() + 60)),
        values={
            **reading.values,
            "advice": tuple(name for name, words in _ADVICE.items() if words in advice),
            "named": len(named),
            "tells_own": "process_in_use" in found,
            "unallocated": unallocated,
            "era": "old" if _OLD.search(text, match.end(), end) else "new",
        },
    )


def _next_head(text: str, start: int) -> int:
    """Where the next message may begin: nothing from there on belongs to this one."""
    after = _ANY_HEAD.search(text, start, start + _LONGEST)
    return after.start() if after else start + _LONGEST


def _device(text: str, start: int, end: int) -> int | None:
    """The device; torch 2.3 printed its number as the character of that code."""
    match = _DEVICE.search(text, start, end)
    if match is None:
        return None
    return int(match[1][:6]) if match[1] else ord(match[2])


def _reserved(found: Mapping[str, Figure | None]) -> tuple[dict[str, Figure | None], Figure | None]:
    """What is reserved, in torch 1.0 to 1.3 and since 2.1 the sum of what is allocated and the rest; and that rest."""
    allocated, unallocated = found.get("allocated"), found.get("unallocated")
    summed = allocated + unallocated if allocated and unallocated else None
    figures = {name: figure for name, figure in found.items() if name not in ("unallocated", "in_total")}
    return {**figures, "reserved": found.get("in_total") or summed}, unallocated


def _others(figures: Mapping[str, Figure], named: list[Figure | None], *, mine: bool) -> dict[str, Figure | None]:
    """What other processes hold, and this one where it is named by its number alone.

    Which of them is this one is told only where one alone is large enough for what PyTorch reserved.
    """
    known = [figure for figure in named if figure is not None]
    reserved = figures.get("reserved")
    if not named or len(known) < len(named):
        return {}
    if mine:
        return {"others_in_use": _sum(known)}
    if reserved is None:
        return {}
    able = [figure for figure in known if figure.high >= reserved.low]
    if not able:
        return {"others_in_use": _sum(known)}
    if len(able) > 1 or not _fits_nowhere_else(able[0], figures, reserved):
        return {}
    rest = [figure for figure in known if figure is not able[0]]
    return {"process_in_use": able[0], "others_in_use": _sum(rest) if rest else None}


def _fits_nowhere_else(process: Figure, figures: Mapping[str, Figure], reserved: Figure) -> bool:
    """Whether what the card holds besides `process` is too little for what PyTorch reserved."""
    total, free = figures.get("total"), figures.get("free")
    return total is not None and free is not None and reserved.exceeds(total - free - process)


def _sum(figures: list[Figure]) -> Figure:
    total = figures[0]
    for figure in figures[1:]:
        total = total + figure
    return total


def _by_file(reading: Reading, match: re.Match[str]) -> Reading:
    """The file of torch that failed tells which memory it was."""
    file = match["file"] or ""
    if "HostAllocator" in file:
        return replace(reading, kind="pinned-host", wording="pinned.refused")
    if "torch/csrc" in file:
        return replace(reading, kind="cuda-driver", wording="driver.refused")
    return with_figures(reading, {}, era="old")


WORDINGS = (
    Wording(
        "torch-cuda",
        "torch.tried",
        "outofmemory|outofthememory|out-of-memory",
        r"""(?P<backend> CUDA | HIP | XPU | DPCPP | NPU | MUSA | MLU | GCU | SDAA)
            out -? of (?: the | -)? memory (?:\.|:|!)?
            (?: \*{0,2} \(? (?: \w{1,40} Allocator)? (?: Tried | Try | Trying) to allocate
                (?: <requested> | (?P<absurd> more than 1EB memory)) )?""",
        finish=_with_clauses,
    ),
    Wording(
        "torch-cuda",
        "torch.tried",
        "totalcapac",
        r"""(?<!4GB!) Tried to allocate <requested> [.(]?
            (?= (?P<backend> GPU | NPU | XPU) .{0,3}? [\d\x00-\x1f]* (?: ; | has))""",
        finish=_with_clauses,
    ),
    Wording(
        "torch-cuda",
        "torch.thc",
        "cudaruntimeerr",
        r"cuda runtime err (?: or)? \(2\) : out of memory (?: at (?P<file> [^\s:]{1,200}) : \d+)?",
        finish=_by_file,
    ),
    Wording(
        "torch-cuda",
        "torch.thc",
        "thcudacheckfail",
        r"""THCudaCheck FAIL file= (?P<file> .{1,200}?) line=\d+ error=2 :? out of memory
            (?: \|? (?: WARNING:)? ran out of memory on GPU \# (?P<device>\d{1,3}))?""",
        finish=_by_file,
    ),
    Wording(
        "torch-cuda",
        "torch.thc",
        "/thc/",
        r"out of memory at (?P<file> [^\s:]{1,200}? /THC/ [^\s:]{1,80}) : \d+",
        finish=_by_file,
    ),
    Wording("torch-xpu", "torch.tried", "outofdevicememory", r"Allocation is out of device memory on current platform"),
    Wording(
        "torch-xpu",
        "torch.block_limit",
        "cannotallocatememoryblock",
        r"""can NOT allocate memory block with size larger than (?P<allowed>4GB) ! Tried to allocate <requested>
            \(GPU (?P<device>\d+) ; (?: <total> total capacity;)? (?: <allocated> already allocated;)?
            (?: <reserved> reserved in total by PyTorch)?""",
    ),
    Wording(
        "torch-cuda",
        "torch.tried",
        "failedwithoom",
        r"""memory allocation failed with OOM on device (?P<device>\d{1,4}?) (?= \D | while)
            (?: while trying to allocate <requested:bytes> bytes \( free: <free:bytes> , total: <total:bytes> \) )?""",
    ),
    Wording(
        "torch-cuda",
        "torch.nvml",
        "nvml_success==",
        r"NVML_SUCCESS == [^\"']{1,160}? INTERNAL ASSERT FAILED at [\"'] [^\"']{0,200}? CUDACachingAllocator\.cpp",
    ),
    Wording(
        "torch-cuda",
        "torch.tried",
        "totalcapacity;",
        r"(?= (?P<backend> GPU | NPU | XPU) \d+ ; <total> total capacity; .{0,40}? already allocated)",
        finish=_with_clauses,
    ),
    Wording(
        "torch-cuda",
        "torch.tried",
        "inuse.oftheallocatedmemory",
        r"""(?: Including non-PyTorch memory,)? (?P<backend>CUDA)?
            (?= this process has .{1,30}? memory in use \. Of the allocated memory .{1,30}? is allocated by PyTorch)""",
        finish=_with_clauses,
    ),
)
