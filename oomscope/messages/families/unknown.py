"""Words of last resort: memory ran out, and no family knows who says so. They count only where nothing else is said."""

from __future__ import annotations

import re
from dataclasses import replace

from oomscope.messages.families.wording import Wording, compiled, with_figures
from oomscope.messages.figures import Figure, parse_figure
from oomscope.messages.records import Reading

_ELSEWHERE = (
    "メモリ不足", "メモリが不足", "메모리 부족", "메모리가 부족",
    "недостаточно памяти", "не хватает памяти", "нехватка памяти",
    "nicht genügend speicher", "nicht genügend arbeitsspeicher", "zu wenig speicher", "mémoire insuffisante",
    "memoria insuficiente", "memória insuficiente", "suficiente memoria",
)  # fmt: skip
"""That memory is short, in other languages."""
_CHINESE = "显存", "内存"
"""A card's memory and any: what goes on says that it is short."""

ANCHORS = (
    b"out of memory", b"outofmemory", b"out of vram", b"out of graphics", b"out of video", b"out of device",
    b"out of shared", b"out of host", b"out of system", b"out of gpu", b"out of cuda", b"out of ram", b"out of hbm",
    b"insufficient", b"not enough", b"have enough", b"not sufficient", b"have sufficient", b"no free memory",
    b"no available memory", b"no more memory", b"to allocate", b"not allocate", b"failed to reserve",
    b"to commit memory", b"allocation fail", b"allocation error", b"memory is not", b"out_of_memory",
    b"exceeds the", b"exceeds available", b"exceeds max", b"than the available", b"than available", b"than the max",
    b"memory limit exceeded", b"memory exhausted", b"exhausted memory", b"exhausted gpu", b"not fit in", b"n't fit in",
    b"to fit in", b"ram fill", b"ram is full", b"ram gets full", b"ram is filled", b"ram full", b"memory is full",
    b" been consumed", b"used up", b"malloc fails",
    b"memory fill", b"memory is filled", b"by rematerialization", b" oom", b"(oom",
    *(words.encode() for words in (*_ELSEWHERE, *_CHINESE)),
)  # fmt: skip

SLUG = "other.unknown"
_AROUND = 100
_WHOSE = (
    ("other", re.compile(r"wasm|\.m?js\b|RangeError", re.IGNORECASE)),
    ("pinned-host", re.compile(r"pinned|page-?locked|hostalloc", re.IGNORECASE)),
    ("jax", re.compile(r"(?<!OU)TPU(?!T)")),
    ("serving-budget", re.compile(r"kv_?cache|cacheblock|pagedcache|max_?model_?len|maxbatch", re.IGNORECASE)),
    (
        "cuda-driver",
        re.compile(
            r"gpu|cuda|vram|device|rocm|hip(?!p)|vulkan|opencl|sycl|metal|graphics|accelerator|显存|显卡", re.IGNORECASE
        ),
    ),
    (
        "host-ram",
        re.compile(r"hostmemory|systemmemory|systemram|cpumemory|mmap|errno12|arbeitsspeicher", re.IGNORECASE),
    ),
)
"""What the words around name, the surest first."""
_PATH = re.compile(r"[/\\][\w./\\-]+|[\w-]+=(?!=)")
"""A file of a program is called ``cuda``, and a setting ``num_gpu``, whatever memory it speaks of."""

_BEFORE, _AFTER = 120, 200
_BETWEEN = r"(?: memory | VRAM | RAM | size | of | is | was | about | only | at least | [:=~(] ){0,4}"
_SIZED = r"(?<! [\d-]) (?! -)"
"""No size begins in the midst of a number, and none is negative."""
_ROLES = {
    "requested": compiled(
        rf"""(?: request (?: ed | s)? | need (?: ed | s)? | (?<! to) require (?: d | s)? | necessary | tried to allocate
            | allocat (?: e | ing)) {_BETWEEN} {_SIZED} <a>
          | (?<! at least) (?<! minimum of) {_SIZED} <b>
            (?: of)? (?: memory | VRAM | RAM)? (?: is | are)? (?: required | needed | requested)
          | (?<! 已) (?<! 已经) (?: 分配 | 申请 | 需要) {_SIZED} <c>
          | (?: requested | required | allocation) size (?: of | is | [:=])? (?P<count>\d{{4,20}}) (?! \.?\d)"""
    ),
    "free": compiled(
        rf"""(?: available | free | remaining | left | have | has) {_BETWEEN} {_SIZED} <a> (?! total | in use | used)
          | {_SIZED} <b> \)? (?: is | are | of)? (?: memory | VRAM | RAM)? (?: available | free | left | remaining)
          | (?: 可用 | 剩余) (?: 显存 | 内存)? (?: 仅 | 只)? (?: 为 | 有 | 剩)? {_SIZED} <c:letter>"""
    ),
    "total": compiled(rf"capacity {_BETWEEN} {_SIZED} <a> | (?: 总 | 容量) (?: 显存 | 内存)? 为? {_SIZED} <b>"),
    "allocated": compiled(rf"已 (?: 经)? (?: 被)? (?: 分配 | 占用 | 使用) 了? {_SIZED} <a>"),
}
"""Sizes that the words right beside them name."""
_ON_CARD = compiled(
    r"""(?: on | for) (?: GPU | device | cuda) (?: id | ordinal)? [:=#]? (?P<device>\d{1,3}) (?! [\d.] | [KMG]i?B)
      | (?: GPU | 显卡) (?P<card>\d{1,3}) 上"""
)


_RAM = re.compile(r"(?<!V)RAM")


def _named_in(words: str) -> str | None:
    return next((kind for kind, names in _WHOSE if names.search(words)), None)


_ASKS = re.compile(r"(?:does(?:this|that|it)mean|is(?:this|that|it)(?:an?|the)|whether)[^.!?]{0,30}\Z", re.IGNORECASE)
_ASKED = re.compile(r"[^.!?]{0,60}[?？]")


def _by_words(reading: Reading, match: re.Match[str]) -> Reading | None:
    """The kind and the figures that the words around name; None where somebody but asks whether memory was short."""
    before = match.string[max(0, match.start() - 60) : match.start()]
    if _ASKS.search(before) and _ASKED.match(match.string, match.end()):
        return None
    around = match.string[max(0, match.start() - _AROUND) : match.end() + _AROUND]
    around = _PATH.sub("", around)
    kind = "host-ram" if _RAM.search(match[0]) else _named_in(match[0]) or _named_in(around) or "other"
    count = match.groupdict().get("count")
    own = {**reading.figures, "requested": parse_figure(count)} if count else reading.figures
    cards = {
        int(card["device"] or card["card"])
        for card in _ON_CARD.finditer(match.string, match.start(), match.end() + _AROUND)
    }
    device = cards.pop() if len(cards) == 1 else None
    return with_figures(replace(reading, kind=kind, device=device), {**_sizes_around(match), **own})


def _sizes_around(match: re.Match[str]) -> dict[str, Figure | None]:
    """The sizes near a message that are named, and not two of a name."""
    start, end = max(0, match.start() - _BEFORE), match.end() + _AFTER
    found: dict[str, Figure | None] = {}
    for name, role in _ROLES.items():
        printed = [one[one.lastgroup or 0] for one in role.finditer(match.string, start, end)]
        if len(set(printed)) == 1:
            found[name] = parse_figure(printed[0])
    return found


_MEMORY = r"""(?:
    (?: GPU | CUDA | CPU | HBM | device | free | available | system | video | graphics | host | virtual | physical
      | unified | shared | local | pinned | workspace | heap | contiguous | main | working | remaining
      | dedicated ){0,4}
    (?: memory | VRAM | (?-i: RAM) ) )"""
_MORE_THAN = (
    r"(?: exceeds | (?: larger | greater | bigger) than) (?: the)? (?: available | max (?: imum)? | total | free)"
)

WORDINGS = (
    Wording(
        "other",
        SLUG,
        "toalloc|notalloc|toreserve|tocommitmemory",
        r"""(?: fail (?: ed | ure)? to | unable to | could not | cannot | can not | can ['’]t)
            (?: alloc (?: ate)? | reserve | commit)
            (?: [^.;:]{0,40}? (?<! [\d-]) (?! -) <requested>
            | [^.;:]{0,40}? \.? size [=:]? (?P<count>\d{1,20}) (?! \.?\d)
            | [^.;]{0,60}? (?: memory | buffer))""",
        finish=_by_words,
    ),
    Wording(
        "other",
        SLUG,
        "insufficient|enough|sufficient|outofvram|outofgraph|outofvideo|outofdevice|outofmemorygraphics|outofshared|"
        "outofhost|outofsystem|outofgpu|outofcuda|outofram|outofhbm|nofreemem|noavailablemem|nomoremem",
        rf"""(?<! \#) (?: insufficient | no (?: free | available | more)
            | (?: not | n['’]t) (?: have)? (?: enough | sufficient) | out of (?! memory)) {_MEMORY}
          | insufficient system resources
          | (?: GPU | device | video | graphics)? memory is (?: insufficient | not enough | not sufficient)
          | OutOfMemoryGraphics""",
        finish=_by_words,
    ),
    Wording(
        "other",
        SLUG,
        "exceeds|thanthe|thanavail|thanmax|memoryexhausted|memorylimitexceeded|exhausted",
        rf"""{_MORE_THAN} (?: allowed)? (?: {_MEMORY} | buffer size | allocation size)
          | memory (?: limit exceeded | exhausted) | exhausted {_MEMORY}""",
        finish=_by_words,
    ),
    Wording(
        "other",
        SLUG,
        "notfitin|n'tfitin|n’tfitin|tofitin",
        rf"(?: not | n['’]t | too (?: large | big) to) fit in (?: to)? (?: the)? {_MEMORY}",
        finish=_by_words,
    ),
    Wording(
        "other",
        SLUG,
        "allocationfail|allocationerror",
        r"""(?: memory | buffer | tensor | GPU | device | VRAM | heap) (?: object | block | pool)? allocation
            (?: failed | failure | error) (?! [a-z_]* [:=]? 0)""",
        finish=_by_words,
    ),
    Wording(
        "other",
        SLUG,
        "ramfill|ramis|ramget|ramgot|ramwas|ramhas|ramfull|memoryis|memoryget|memorygot|memorywas|memoryhas|memoryfill",
        r"""(?: (?-i: V?RAM) | (?: GPU | system | device | host | video) memory) (?: is | gets? | got | was)?
            (?: full (?! [a-z]) | fill (?: s | ing | ed) up (?! to))
          | all (?: the | available){0,2} (?: (?-i: V?RAM) | memory) (?: is | was | has been)
            (?: consumed | used up)""",
        finish=_by_words,
    ),
    Wording("cuda-driver", SLUG, "mallocfails", r"(?: cuda | hip) Malloc (?: Async | Managed)? fails (?! with | :)"),
    Wording("other", SLUG, "_out_of_", r"(?-i: [A-Z]) (?-i: [A-Z0-9_]){2,40} _OUT_OF_MEMORY", finish=_by_words),
    Wording(
        "other",
        SLUG,
        "outofmemory",
        r"""(?<! running) (?<! mayrun) (?<! torun) (?<! avoid) (?<! 避免) (?<! 防止)
            (?: out of memory | OutOfMemoryError)""",
        finish=_by_words,
    ),
    Wording(
        "other",
        SLUG,
        "|".join(words.replace(" ", "") for words in (*_ELSEWHERE, *_CHINESE)),
        "|".join(words.replace(" ", "") for words in _ELSEWHERE)
        + rf"| (?: {'|'.join(_CHINESE)} ) (?: 空间)? (?: 不足 | 不够 | 溢出 | 耗尽) | 爆 (?: {'|'.join(_CHINESE)} )",
        finish=_by_words,
    ),
    Wording(
        "other",
        SLUG,
        "byrematerialization",
        r"Can't reduce memory use below [\d.]{1,12} [KMGT]?i?B (?: \(\d{1,20} bytes\))? by rematerialization",
    ),
    Wording(
        "other",
        SLUG,
        "oom",
        r"""(?<! (?-i: [A-Z_./-])) (?<! avoid) (?<! avoids) (?<! prevent) (?<! prevents) (?<! without) (?<! handle)
            (?<! catch) (?-i: OOM) (?! scenario) (?: s | ed)? (?! (?-i: [A-Z_/=]) | \*{0,2} \( | -? kill | \. [a-z])
          | (?: into | gets? | got | hits? | an | causes? | goes | went | CUDA | GPU | VRAM) oom (?! [-_] | kill)""",
        finish=_by_words,
    ),
)
