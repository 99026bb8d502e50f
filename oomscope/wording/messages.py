"""Messages about memory in words: what failed, where it stands, what to run next."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from oomscope.units import format_size
from oomscope.wording.clean import clean

if TYPE_CHECKING:
    from oomscope.messages.records import OomMessage

KIND_LABELS = {
    "torch-cuda": "PyTorch on CUDA",
    "torch-hip": "PyTorch on ROCm",
    "torch-xpu": "PyTorch on XPU",
    "torch-mps": "PyTorch on Apple GPU (MPS)",
    "torch-npu": "PyTorch on NPU",
    "torch-async": "PyTorch on CUDA, cudaMallocAsync",
    "cuda-driver": "Driver",
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
    "nccl": "NCCL",
    "host-ram": "Host memory",
    "pinned-host": "Page-locked host memory",
    "serving-budget": "Serving engine's budget",
    "jax": "JAX (XLA)",
    "tensorflow": "TensorFlow",
    "shared-memory": "On-chip memory of a kernel",
    "oom-killer": "Process killed",
    "other": "Other",
}
"""What each kind of message is called."""

_RECORDED = {"torch-cuda", "torch-hip"}
_TOOLS = {"torch-xpu": "xpu-smi ps", "torch-npu": "npu-smi info"}
_PROCESSES = "nvidia-smi --query-compute-apps=pid,used_memory --format=csv"
_MPS = "vmmap --summary PID"
_BY_WORDS = (
    (re.compile(r"\bcuda|\bcu[A-Z]|nvidia|\bNVML|\bNCCL", re.ASCII), _PROCESSES),
    (re.compile(r"\bhip|\broc|\bHSA_|\bRCCL", re.ASCII | re.IGNORECASE), "rocm-smi --showpids"),
    (re.compile(r"\b(?:ZE|UR|PI)_[A-Z]*_?ERROR|level[_ ]zero|\bxpu\b", re.ASCII | re.IGNORECASE), "xpu-smi ps"),
    (re.compile(r"\bacl|\bhalMem|\bNPU\b|EL0004", re.ASCII), "npu-smi info"),
    (re.compile(r"\bnrt_|\bNeuron|\bND \d+:NC", re.ASCII), "neuron-top"),
    (re.compile(r"\bkIOGPU|\bMTL[A-Z]|\[metal", re.ASCII | re.IGNORECASE), _MPS),
    (re.compile(r"\bDML\b|DmlAllocator|DirectML"), None),
    (re.compile(r"\bTPU\b|That was not\s+possible", re.ASCII), None),
    (re.compile(r"vulkan|\bVk[A-Z_]|opencl|\bcl_|webgpu|OutOfDeviceMemory|OUT_OF_DEVICE|video memory", re.I), None),
)
"""Who tells what holds a device of whose runtime the message has the words; None: no tool for all of them."""
_OF_TORCH = re.compile(r"RuntimeError|AcceleratorError|torch|kernel\s?errors\s?might", re.IGNORECASE)
"""Others print ``CUDA error: out of memory`` as well: engines in C++, whose memory torch cannot record."""
_HOST = "free -h"
_ON_HOST = ("ollama.system", "vllm.startup_host")
"""Engines' checks of the machine's memory."""
_SHARED = "df -h /dev/shm"
_KERNEL = "sudo dmesg -T | grep -i -E 'killed process|oom-kill'"
_SCHEDULERS = (
    (re.compile(r"slurm|\bsrun\b|\bStepId\b", re.IGNORECASE), "sacct -j JOBID -o JobID,State,ReqMem,MaxRSS"),
    (re.compile(r"\bYARN\b"), "yarn logs -applicationId APPLICATION"),
    (re.compile(r"\bPBS\b|resources_used|exceeded MEM usage"), "qstat -fx JOBID"),
    (re.compile(r"\bLSF\b|TERM_MEMLIMIT"), "bjobs -l JOBID"),
    (re.compile(r"Reason\W{0,12}OOM|low on resource|MemoryPressure", re.IGNORECASE), "kubectl describe pod POD"),
)
"""Who ran the job knows how much it held; the kernel's log of the node is not for its users."""
_OF_OTHERS = {
    "message_proofs.others": "others",
    "message_proofs.unnamed_others": "rest",
    "message_proofs.outside": "rest",
    "message_proofs.mostly_outside": "rest",
}
"""What proves that others hold some of the card, and the value that says how much."""
_JOB = re.compile(r"(?:StepId=|\bjob[ =:]?)(\d{3,12})\b", re.IGNORECASE)
_TELLS_ITSELF = ("killed.notebook", "killed.ray", "killed.early", "killed.worker")
"""No kernel's log knows of these."""
_NOT_OF_THE_CARD = ("jax.space", "nccl.other_reason", "cache.tokens")
"""Too large even alone, no shortage, or a cache that has its place already: whoever holds the card plays no part."""
_NATIVE = "PYTORCH_CUDA_ALLOC_CONF=backend:native"
"""The other backend keeps no history."""
_COMFY = "--disable-cuda-malloc"
_RUN = "oomscope run"
_SCRIPT = "your_script.py"
_PLAIN_FILE = re.compile(r"[\w./+-]+\.py\Z")


def headline(message: OomMessage) -> str:
    """What failed: ``PyTorch on CUDA, GPU 1: 18.84 GiB requested``."""
    place = "" if message.reading.device is None else f", device {message.reading.device}"
    request = message.figure("requested")
    if request is not None:
        amount = f"{format_size(request.value)} {'needed' if _is_of_a_pool(message) else 'requested'}"
    elif message.kind == "oom-killer" and (used := message.figure("process_in_use")):
        amount = f"{format_size(used.value)} in use"
    else:
        amount = "no size printed"
    return f"{_label(message)}{place}: {amount}"


def _is_of_a_pool(message: OomMessage) -> bool:
    """Whether what is printed is all that a pool would have to hold."""
    return any(proof.code == "message_proofs.pool_of_context" for proof in message.proves)


def _label(message: OomMessage) -> str:
    """What the kind is called, or the program whose own message it is."""
    named = (proof.values["program"] for proof in message.proves if "program" in proof.values)
    return str(next(named, KIND_LABELS[message.kind]))


def next_commands_after(message: OomMessage) -> list[str]:
    """The one command that would tell the rest; none where no command would."""
    kind = message.kind
    if _is_mostly_others(message):
        return _processes(message)
    if kind in _RECORDED or (message.reading.wording == "driver.torch" and _OF_TORCH.search(_said(message))):
        return [_run(message)]
    if kind in ("cublas", "cudnn") and message.around.isdisjoint(("tensorflow", "onnxruntime")):
        return [_run(message, "--on exception")]
    if kind == "torch-async":
        # ComfyUI adds the other backend to the variable by itself.
        return [f"{_run(message)} {_COMFY}" if "comfyui" in message.around else f"{_NATIVE} {_run(message)}"]
    if kind in _TOOLS:
        return [_TOOLS[kind]]
    if kind == "torch-mps":
        return [_MPS]
    if message.reading.wording in _NOT_OF_THE_CARD or _its_own(message):
        return []
    if kind in ("cuda-driver", "cublas", "cudnn", "nccl", "serving-budget", "jax", "tensorflow"):
        on_host = message.reading.wording in _ON_HOST or _asks_of_the_host(message)
        return [_HOST] if on_host else _processes(message)
    if kind in ("host-ram", "pinned-host"):
        if message.reading.wording == "host.shared":
            return [_SHARED]
        return [_HOST] if message.cannot_tell and "windows" not in message.around else []
    if kind == "oom-killer":
        return _after_a_kill(message)
    return []


def _its_own(message: OomMessage) -> bool:
    """Whether the program itself holds what is missing."""
    return any(proof.code == "message_proofs.own_limit" for proof in message.proves)


def _is_mostly_others(message: OomMessage) -> bool:
    """Whether others hold more of the card than this allocator: what it holds itself would tell little."""
    mine = message.figure("reserved") or message.figure("allocated")
    held = [proof.values.get(name, 0) for proof in message.proves if (name := _OF_OTHERS.get(proof.code))]
    return mine is not None and max(held, default=0) > mine.value


def _asks_of_the_host(message: OomMessage) -> bool:
    """Whether it is the machine's memory of which more is asked, though a framework's allocator speaks."""
    return any(gap.code == "message_gaps.host" for gap in message.cannot_tell)


def _names_the_killed(message: OomMessage) -> bool:
    """Whether the kernel's log is there already, down to the process that it chose."""
    return message.reading.wording == "killed.kernel" and "pid" in message.reading.values


def _after_a_kill(message: OomMessage) -> list[str]:
    """What tells more of a kill: the scheduler that names itself, or the kernel's log, where that may be read."""
    if message.reading.wording in _TELLS_ITSELF or _names_the_killed(message):
        return []
    command = next((command for words, command in _SCHEDULERS if words.search(_said(message))), _KERNEL)
    job = _JOB.search(_said(message))
    return [command.replace("JOBID", job[1]) if job else command]


def _processes(message: OomMessage) -> list[str]:
    """What lists the processes on the device whose words the message has; NVIDIA's where it has none."""
    said = (message.text, _said(message))
    found = next((tool for text in said for words, tool in _BY_WORDS if words.search(text)), _PROCESSES)
    return [] if found is None else [found]


def _said(message: OomMessage) -> str:
    """The message and what stands right behind it."""
    return f"{message.text} {message.reading.values.get('after', '')}"


def _run(message: OomMessage, options: str = "") -> str:
    """``oomscope run train.py``, behind torchrun where one of several ranks is named: many call a single one 0."""
    script = message.script or ""
    name = clean(script, 120) if _PLAIN_FILE.match(script) else _SCRIPT
    command = " ".join(filter(None, (_RUN, options, shlex.quote(name))))
    return f"torchrun --nproc-per-node=gpu --no-python {command}" if message.rank else command


NOTHING = "No message about memory in {lines}."
UNREAD = "At least {count} more places look like messages and were not read."
"""Said where there are more messages than anyone would read."""
