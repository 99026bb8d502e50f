"""Engines that serve models check their own budget before the card could refuse: vLLM, SGLang and others."""

from __future__ import annotations

from oomscope.messages.families.wording import Wording

ANCHORS = (
    b"less than desired", b"kv cache is needed", b"stored in kv cache", b"the cache blocks", b"mem-fraction-static",
    b"try to lower your batch", b"not enough memory", b"not enough host memory", b"memory capacity is unbalanced",
    b"more system memory", b"error in memory profiling", b"enough gpu memory", b"kv cache pool is full",
    b"available kv cache memory", b"too large for system",
)  # fmt: skip

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
        r"""Not enough memory [.;,]? (?: Please)? (?: try to)? increase --mem-fraction-static \.?
            (?: .{0,40}? mem_fraction_static= <fraction:number>)?""",
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
        "serving-budget", "tgi.prefill", "prefilltokens", r"Not enough memory to handle <tokens:count> prefill tokens"
    ),
    Wording(
        "serving-budget",
        "ollama.system",
        "moresystemmemory",
        r"model requires more system memory \( <requested> \) than is available \( <free> \)",
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
        "sglang.host",
        "hostmemoryavailable",
        r"Not enough host memory available \. Requesting <requested> but only have <free> free",
    ),
    Wording("serving-budget", "lmdeploy.cache", "enoughgpumemory", r"No enough gpu memory for runtime"),
)
