"""JAX, on GPU and TPU."""

from __future__ import annotations

import re
from dataclasses import replace

from oomscope.messages.families.wording import Wording, with_exact, with_figures
from oomscope.messages.records import Reading

ANCHORS = (
    b"resource_exhausted",
    b"ran out of memory",
    b"trying to allocate",
    b"that was not possible",
    b"failed to allocate",
    b"scoped allocation",
    b"program hbm requirement",
)

_ON_CHIP = {"vmem", "smem", "cmem", "sflag"}


def _by_space(reading: Reading, match: re.Match[str]) -> Reading:
    """In the device's memory (hbm), or on the chip, where one kernel has its limit."""
    if match["space"].lower() not in _ON_CHIP:
        return reading
    figures = {name: figure for name, figure in reading.figures.items() if name != "total"}
    kernel = replace(reading, kind="shared-memory", wording="chip.tpu", figures=figures)
    return with_figures(kernel, {"allowed": reading.figures.get("total")})


_TENSORFLOW = re.compile(r"tensorflow\.python|Grapherror|Graphexecutionerror", re.IGNORECASE)


def _whose(reading: Reading, match: re.Match[str]) -> Reading:
    """TensorFlow compiles with XLA as well, and names its operation."""
    if match["operation"] or _TENSORFLOW.search(match.string, max(0, match.start() - 300), match.start()):
        return replace(reading, kind="tensorflow", wording="tensorflow.tensor")
    return reading


_HEAD = re.compile(r"Ranoutofmemoryinmemoryspace", re.IGNORECASE)


def _without_head(reading: Reading, match: re.Match[str]) -> Reading | None:
    """The table of a program's memory, where the line that begins the message is missing."""
    return None if _HEAD.search(match.string, max(0, match.start() - 400), match.start()) else reading


WORDINGS = (
    Wording(
        "jax",
        "jax.space",
        "inmemoryspace",
        r"""Ran out of memory in memory space
            (?P<space> hbm | vmem | smem | cmem | sflag | \w{1,20}?) (?= \W | while | $)
            (?: .{0,160}? Used <requested:letter> of <total:letter>)?""",
        finish=_by_space,
    ),
    Wording(
        "jax",
        "jax.space",
        "hbmrequirement",
        r"Total hbm usage >= [\d.]{1,12} [KMGT]? : .{0,300}? Program hbm requirement <requested:letter>",
        finish=_without_head,
    ),
    Wording(
        "jax",
        "jax.reserve",
        "attemptingto",
        r"""(?: Exception in device=TPU: (?P<device>\d+) : RESOURCE_EXHAUSTED: .{0,160}? )?
            Attempting to (?: allocate | reserve) <requested:letter> (?: at the (?: bottom | top) of memory)? \.
            That was not possible \.? (?: There (?: are | is | were) <free:letter> free)?""",
    ),
    Wording(
        "jax",
        "jax.tried",
        "outofmemorywhiletryingtoallocate",
        r"Out of memory while trying to allocate <requested> (?P<operation> \.? \[Op:)?",
        finish=_whose,
    ),
    Wording(
        "jax",
        "jax.tried",
        "outofmemoryallocating",
        r"RESOURCE_EXHAUSTED: Out of memory allocating <requested:bytes> bytes",
    ),
    Wording(
        "jax",
        "jax.tried",
        "bytesfornewconstant",
        r"(?: INTERNAL:)? Failed to allocate <requested:bytes> bytes for new constant",
    ),
    Wording(
        "jax",
        "jax.tried",
        "ondeviceordinal",
        r"""Failed to allocate (?: request for)? <requested:letter> (?: \( (?P<exactly>\d+) B \))?
            on device ordinal (?P<device>\d+)""",
        finish=with_exact,
    ),
    Wording(
        "jax",
        "jax.tried",
        "cumemallocasync",
        r"""cuMemAllocAsync failed to allocate <requested:bytes> bytes .{0,100}?
            Free memory / Total memory: <free:bytes> / <total:bytes>""",
    ),
    Wording(
        "jax",
        "jax.refused",
        "xlafailedto|xlaranoutof|xlacouldnot|xlaisoutof|xlaoutof",
        r"XLA (?: failed to allocate | could not allocate | (?: ran | is)? out of) [^.;:]{0,30}? memory",
    ),
    Wording(
        "shared-memory",
        "chip.tpu",
        "scopedvmemlimit",
        r"Scoped allocation with size <requested:letter> and limit <allowed:letter> exceeded scoped vmem limit",
    ),
    Wording(
        "jax",
        "jax.refused",
        "resource_exhausted:",
        r"""(?: XlaRuntimeError | JaxRuntimeError) : (?: INTERNAL:)? RESOURCE_EXHAUSTED: (?! OOM when)
            (?! .{0,120}? (?: out of memory | Attempting to | Failed to allocate | memory size limit))""",
    ),
)
