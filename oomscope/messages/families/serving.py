"""Engines that serve models check their own budget before the card could refuse: vLLM, SGLang and others."""

from __future__ import annotations

import math
import re

from oomscope.messages.families.wording import Wording, compiled, with_figures
from oomscope.messages.figures import exact, parse_figure
from oomscope.messages.records import Reading

ANCHORS = (
    b"free memory on device", b"kv cache is needed", b"stored in kv cache", b"the cache blocks",
    b"not enough memory", b"not enough host memory", b"memory capacity is unbalanced",
    b"more system memory", b"error in memory profiling", b"enough gpu memory", b"kv cache pool is full",
    b"available kv cache memory", b"too large for system", b"no memory is available", b"insufficient gpu memory",
    b"inpagedkvcache", b"for kv cache is -", b"enough kv cache space", b"buffer for kv cache",
    b"vram for model and cache", b"vram in split for model", b"kv cache exhausted", b"failed to allocate",
    b"failed to fit params", b"no enough blocks", b"kvcache tokens", b"need_size", b"enough resources to",
    b"allocate any layers", b"any model layers", b"memory layout cannot",
    b"capacity of block_manager", b"cpu swap space", b"too large swap space",
    b"than available vram", b"than available ram", b"free space in the kv cache", b"memory slot for batch",
    b"memory for the kv cache", b"desired cpu memory",
    b"insufficient system resources", b"to build a pool from",
)  # fmt: skip

FIT = "llama.fit"
"""A warning: llama.cpp found no settings that fit, and loads the model all the same."""
_ITEM = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2, "uint8": 1, "int8": 1}
"""Bytes of one element, by torch's names of types; any float8 has one."""


def _of_shape(reading: Reading, match: re.Match[str]) -> Reading:
    """The size of a tensor is that of its shape."""
    item = 1 if match["type"].startswith("float8") else _ITEM.get(match["type"])
    if item is None:
        return reading
    numbers = [int(one[:18]) for one in re.findall(r"\d+", match["shape"])]
    return with_figures(reading, {"requested": exact(math.prod(numbers) * item)})


def _with_buffer(reading: Reading, match: re.Match[str]) -> Reading:
    weights, buffer = parse_figure(match["weights"]), parse_figure(match["buffer"])
    return with_figures(reading, {"requested": weights + buffer if weights and buffer else None})


_BESIDE = 120
"""Characters after a refusal in which an engine tells what it compared."""
_COMPARED = {
    "requested": compiled(
        r"""(?: required? | requires | requested | requesting | needed | needs? | wanted) (?: memory)? [:=]? (?: is | at
            least | about)? <a> | <b> (?: of memory)? (?: is | are)? (?: required | needed | requested)"""
    ),
    "free": compiled(
        r"""(?: available | free | have | has | left) (?: memory)? [:=]? (?: is | only | about)* <a>
          | <b> (?: of memory)? (?: is | are)? (?: available | free | left)"""
    ),
}


def _with_budget(reading: Reading, match: re.Match[str]) -> Reading:
    """What the engine wanted and what it had, where both are named right behind."""
    found = {name: one.search(match.string, match.end(), match.end() + _BESIDE) for name, one in _COMPARED.items()}
    sizes = {name: parse_figure(one[one.lastgroup or 0]) for name, one in found.items() if one}
    return with_figures(reading, sizes) if len(sizes) == len(found) else reading


_REFUSED_ABOVE = re.compile(
    r"(?:bufferofsize\d{1,20}|OutOf(?:Device|Host)?Memory|failed:outofmemory)[\W]{0,4}"
    r"(?:llama_\w{1,40}:)?(?:failedtoinitializethecontext:)?\Z",
    re.IGNORECASE,
)


def _unless_told(reading: Reading, match: re.Match[str]) -> Reading | None:
    """llama.cpp says it again after the line of the buffer or of its device, which tells the size and the memory."""
    above = match.string[max(0, match.start() - 120) : match.start()]
    return None if _REFUSED_ABOVE.search(above) else reading


WORDINGS = (
    Wording(
        "serving-budget",
        "vllm.startup",
        "onstartupislessthandesired",
        r"""Free memory on device (?: [a-z]+ : (?P<device>\d+))? \(? <free:bare> / <total> \) on startup is less than
            desired GPU memory utilization \( <utilization:number> , <requested> \)""",
        unit="GiB",
    ),
    Wording(
        "serving-budget",
        "vllm.startup_host",
        "onstartupislessthandesired",
        r"""Available memory on node (?P<node>\d{1,4}) \(? <free:bare> / <total> \) on startup is less than desired CPU
            memory utilization \( <utilization:number> , <requested> \)""",
        unit="GiB",
    ),
    Wording(
        "serving-budget",
        "vllm.kv_cache",
        "kvcacheisneeded",
        r"""To serve at least one request with the model (?: '?s)? (?: '?s)? max seq len \( <length:count> \) ,? \(?
            <requested> KV cache is needed, which is larger than the available KV cache memory \(? <free> \)?
            (?: \. Based on the available memory, the? estimated maximum model length is <fits:count>)?""",
    ),
    Wording(
        "serving-budget",
        "vllm.length",
        "storedinkvcache",
        r"""max seq len \( <length:count> \) is larger than the maximum number of tokens that can be stored in KV cache
            \( <fits:count> \)""",
    ),
    Wording(
        "serving-budget",
        "cache.tokens",
        "kvcachetokens",
        r"Remaining <left:count> kvcache tokens, but your prompt requires <tokens:count> new tokens",
    ),
    Wording("serving-budget", "vllm.no_blocks", "thecacheblocks", r"No available memory for the cache blocks \.?"),
    Wording(
        "serving-budget",
        "vllm.no_blocks",
        "availablekvcachememory",
        r"Available KV cache memory: (?P<free> - [\d.]+ GiB)",
    ),
    Wording(
        "serving-budget",
        "vllm.profiling",
        "errorinmemoryprofiling",
        r"""Error in memory profiling \.?
            (?: Initial free memory (?P<before> [\d.]+ (?: GiB)?) , current free memory <free:bare>)?""",
    ),
    Wording(
        "serving-budget",
        "vllm.warm_up",
        "warmingupsampler",
        r"(?: CUDA)? out of memory occurred when warming up sampler with <requests:count> dummy requests",
    ),
    Wording(
        "serving-budget",
        "sglang.static",
        "mem-fraction-static",
        r"""Not enough memory [.;,!]? (?: Please)? (?: try to)? increase --mem-fraction-static \.?
            (?: .{0,40}? mem_fraction_static= <fraction:number>)?""",
    ),
    Wording(
        "serving-budget",
        "sglang.static",
        "memoryforthekvcache",
        r"""Loaded weights leave no (?: GPU)? memory for the KV cache
            (?: under --mem-fraction-static= <fraction:number>)?""",
    ),
    Wording(
        "serving-budget",
        "sglang.step",
        "trytoloweryourbatch",
        r"""(?: Prefill | Decode | Extend) out of memory \. Try to lower your batch size \.?
            (?: Try to allocate <tokens:count> tokens \.?)? (?: Available tokens: <left:count>)?""",
    ),
    Wording(
        "serving-budget",
        "sglang.step",
        "smallernumber",
        r"(?: alloc_\w{1,30}? runs)? out of memory \. Please set a smaller number for `?'? --max-running-requests",
    ),
    Wording("serving-budget", "sglang.step", "kvcachepoolisfull", r"KV cache pool is full"),
    Wording(
        "serving-budget",
        "sglang.unbalanced",
        "memorycapacityisunbalanced",
        r"The memory capacity is unbalanced \.? (?: Some GPUs may be occupied by other processes \.?)?",
    ),
    Wording(
        "serving-budget",
        "tgi.prefill",
        "prefilltokens",
        r"""Not enough memory to handle <tokens:count>
            (?: prefill tokens | total tokens with <prefill:count> prefill tokens)""",
    ),
    Wording(
        "serving-budget",
        "ollama.system",
        "moresystemmemory",
        r"model requires more system memory (?: \( <requested> \) than is available \( <free> \) )?",
    ),
    Wording(
        "serving-budget",
        "ollama.system",
        "toolargeforsystem",
        r"""model request too large for system" requested=" <requested> " available=" <free> "
            (?: total=" <total> ")?""",
    ),
    Wording(
        "serving-budget",
        "ollama.system",
        "toolargeforsystem",
        r"""model request too large for system" requested=" <requested> " available= <free:bytes> (?= total | \s | \Z)
            (?: total=" <total> ")?""",
    ),
    Wording(
        "serving-budget",
        "ollama.layers",
        "anylayers|anymodellayers|memorylayout",
        r"""GPU has too little memory to allocate any layers (?: .{0,300}? total=" <total> "available=" <free> " )?
          | insufficient VRAM to load any model layers | memory layout cannot be allocated""",
    ),
    Wording(
        "serving-budget",
        "engine.pool",
        "toosmalltobuildapool",
        r"""<free> is too small to build a pool from the page sizes
            (?: .{0,300}? Exact tiling would take <requested>)?""",
    ),
    Wording(
        "serving-budget",
        "engine.estimate",
        "insufficientsystemresources",
        r"""Model loading was stopped due to insufficient system resources
            (?: .{0,80}? requires approximately <requested> of memory)?""",
    ),
    Wording(
        "serving-budget",
        "engine.estimate",
        "thanavailable",
        r"estimated (?: VRAM | RAM | memory) usage is (?: greater | larger | more | higher) than available V?RAM",
    ),
    Wording(
        "serving-budget",
        "sglang.host",
        "hostmemoryavailable",
        r"Not enough host memory available \. Requesting <requested> but only have <free> free",
    ),
    Wording("serving-budget", "lmdeploy.cache", "enoughgpumemory", r"No enough gpu memory for runtime"),
    Wording(
        "serving-budget",
        "engine.cache",
        "memoryforkvcache|memoryforthekvcache",
        r"(?: Not enough | Insufficient) (?: GPU)? memory for (?: the)? KV cache (?: allocation)?",
        finish=_with_budget,
    ),
    Wording(
        "serving-budget",
        "vllm.no_blocks",
        "forkvcacheis-",
        r"memory reserved for KV Cache is (?P<free> - [\d.]+ GiB)",
    ),
    Wording(
        "serving-budget",
        "engine.cache",
        "enoughkvcachespace|bufferforkvcache",
        r"(?: there)? is not enough KV cache space | failed to allocate buffer for kv cache",
        finish=_unless_told,
    ),
    Wording(
        "serving-budget",
        "engine.cache",
        "capacityofblock_manager|cpuswapspace",
        r"""Input prompt \( <tokens:count> tokens \) .{0,40}? is too long and exceeds the capacity of block_manager
          | due to the lack of CPU swap space""",
    ),
    Wording(
        "serving-budget",
        "vllm.swap",
        "toolargeswapspace",
        r"Too large swap space \. <requested> out of the <total> total CPU memory is allocated for the swap space",
    ),
    Wording(
        "serving-budget",
        "engine.cache",
        "freespaceinthekvcache|memoryslotforbatch",
        r"""failed to find (?: free space in the KV cache | a memory slot for batch of size <tokens:count>)""",
    ),
    Wording("serving-budget", "engine.cache", "kvcacheexhausted", r"KV cache exhausted (?: : no free blocks)?"),
    Wording(
        "serving-budget",
        "exllama.split",
        "formodelandcache",
        r"""(?<! ["'] ) Insufficient VRAM (?: in split)? for model and cache""",
    ),
    Wording(
        "serving-budget",
        FIT,
        "failedtofitparams",
        r"""(?: projected to use <requested> of device memory vs \. <free> of free device memory .{0,360}? )?
            failed to fit params to free device memory""",
    ),
    Wording(
        "serving-budget",
        "engine.cache",
        "noenoughblocks|need_size|enoughresourcesto|allocatetoken",
        r"""No enough blocks \. Assertion fail | available_size \(\) = [\d.]{1,12} < need_size
          | not enough resources to (?: run | load) (?: the)? model | failed to allocate tokens? [a-z]{1,40}""",
    ),
    Wording(
        "serving-budget",
        "lmcache.pool",
        "nomemoryisavailable",
        r"""Failed to allocate memory for tensor \( (?: torch\.Size)? \(? \[? (?P<shape> [\d,]{1,80}) \]? \)? ,
            (?: torch\.)? (?P<type>\w{1,20}) \) because no memory is available""",
        finish=_of_shape,
    ),
    Wording(
        "serving-budget",
        "triton.pool",
        "cnmem_status",
        r"""Failed to allocate CUDA memory with byte size <requested:bytes> on GPU (?P<device>\d+) :
            CNMEM_STATUS_OUT_OF_MEMORY""",
    ),
    Wording(
        "serving-budget",
        "trtllm.executor",
        "insufficientgpumemory",
        r"""Executor creation failed due to insufficient GPU memory \.?
            (?: The following component could not be created: (?P<component> [\w()-]{1,40}?)
                Total GPU memory \(GiB\): <total:number> (?= Free)
                Free GPU memory before component creation attempt \(GiB\): <free:number> (?! \d | \.) )?""",
        unit="GiB",
    ),
    Wording(
        "serving-budget",
        "trtllm.tokens",
        "inpagedkvcache",
        r"maxTokensInPagedKvCache (?: \( \d+ \) )? must be large enough to process at least 1 sequence to completion",
    ),
    Wording(
        "serving-budget",
        "mlc.weights",
        "insufficientgpumemory",
        r"""Insufficient GPU memory error: The available single GPU memory is <free> , which is less than the sum of
            model weight size \( (?P<weights> [\d.]+ MB) \) and temporary buffer size \( (?P<buffer> [\d.]+ MB) \)""",
        finish=_with_buffer,
    ),
)
