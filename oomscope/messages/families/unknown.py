"""Words of last resort: memory ran out, and no family knows who says so. They count only where nothing else is said."""

from __future__ import annotations

import re
from dataclasses import replace

from oomscope.messages.families.wording import Wording, with_figures
from oomscope.messages.figures import parse_figure
from oomscope.messages.records import Reading

ANCHORS = (
    b"out of memory", b"outofmemory", b"out of vram", b"insufficient memory", b"insufficient gpu memory",
    b"insufficient device memory", b"not enough memory", b"not enough gpu memory", b"not enough vram", b"to allocate",
    b"not enough free memory", b"not allocate", b"failed to reserve", b"insufficient vram",
    b"insufficient system resources",
)  # fmt: skip

SLUG = "other.unknown"
_AROUND = 100
_WHOSE = (
    ("pinned-host", re.compile(r"pinned|page-?locked|hostalloc", re.IGNORECASE)),
    ("serving-budget", re.compile(r"kv_?cache|cacheblock|pagedcache|max_?model_?len|maxbatch", re.IGNORECASE)),
    ("cuda-driver", re.compile(r"gpu|cuda|vram|device|rocm|hip(?!p)|vulkan|opencl|sycl|metal", re.IGNORECASE)),
    ("host-ram", re.compile(r"hostmemory|systemmemory|systemram|cpumemory|mmap|errno12", re.IGNORECASE)),
)
"""What the words around name, the surest first."""


def _by_words(reading: Reading, match: re.Match[str]) -> Reading:
    around = match.string[max(0, match.start() - _AROUND) : match.end() + _AROUND // 2]
    kind = next((kind for kind, words in _WHOSE if words.search(around)), "other")
    count = match.groupdict().get("count")
    return with_figures(replace(reading, kind=kind), {"requested": parse_figure(count) if count else None})


WORDINGS = (
    Wording(
        "other",
        SLUG,
        "toalloc|notalloc|toreserve",
        r"""(?: fail (?: ed | ure)? to | unable to | could not | cannot | can not) (?: alloc (?: ate)? | reserve)
            (?: [^.;:]{0,40}? (?<!\d) <requested> | [^.;:]{0,40}? size [=:]? (?P<count>\d{1,20}) (?! [\d.])
            | [^.;]{0,60}? (?: memory | buffer))""",
        finish=_by_words,
    ),
    Wording(
        "other",
        SLUG,
        "insufficientmemory|insufficientgpumemory|insufficientdevicememory|notenoughmemory|notenoughgpumemory|"
        "notenoughvram|notenoughfreememory|insufficientvram|outofvram|insufficientsystemresources",
        r"""(?: insufficient | not enough) (?: GPU | device | free)? (?: memory | VRAM | system resources)
          | (?: ran)? out of VRAM""",
        finish=_by_words,
    ),
    Wording(
        "other",
        SLUG,
        "outofmemory",
        r"(?<! running) (?<! mayrun) (?<! torun) (?<! avoid) (?: out of memory | OutOfMemoryError)",
    ),
)
