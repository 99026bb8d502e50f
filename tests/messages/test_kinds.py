"""A kind tells which layer refused, by what a message says, whatever product it names."""

from __future__ import annotations

import pytest

from oomscope.messages import KINDS
from oomscope.messages.kinds import LAYERS, refused_by
from oomscope.wording.messages import next_commands_after
from tests.messages.comparing import read


@pytest.mark.parametrize(
    ("text", "kind", "layer"),
    [
        ("QX_ERROR_OUT_OF_DEVICE_MEMORY", "cuda-driver", "device"),
        ("qxrt: InvalidState: ErrorOutOfDeviceMemory", "cuda-driver", "device"),
        ("VK_ERROR_OUT_OF_DEVICE_MEMORY", "cuda-driver", "device"),
        ("UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", "cuda-driver", "device"),
        ("alloc_tensor_range: failed to allocate Qx1 buffer of size 4096", "cuda-driver", "device"),
        ("alloc_tensor_range: failed to allocate CPU buffer of size 4096", "host-ram", "host"),
        ("qxrt: not enough GPU memory", "cuda-driver", "device"),
        ("qxrt: ran out of graphics memory", "cuda-driver", "device"),
        ("WebGPU device error(2): Out of memory", "cuda-driver", "device"),
        ("RMM failure at: x/pool_memory_resource.hpp:196: Maximum pool size exceeded", "other", "program"),
        ("Out of memory allocating 1,024 bytes (allocated so far: 2,048 bytes).", "other", "program"),
        ("JavaScript heap out of memory", "other", "program"),
        (
            "Tactic Device request: 2304MB Available: 1536MB. Device memory is insufficient to use tactic.",
            "other",
            "nobody",
        ),
        ("too many resources requested for launch", "other", "nobody"),
        ("frobnicator: out of memory, sorry", "other", None),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.batch.", "oom-killer", "supervisor"),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", "torch-cuda", "allocator"),
        ("CUBLAS_STATUS_ALLOC_FAILED", "cublas", "library"),
    ],
)
def test_a_message_tells_which_layer_refused(text: str, kind: str, layer: str | None):
    (message,) = read(f"{text}\n").messages
    assert (message.kind, message.refused_by) == (kind, layer)


@pytest.mark.parametrize("hint", ["may be killed by the OOM killer", "could be killed by the OOM-killer"])
def test_that_a_process_may_be_killed_is_no_kill(hint: str):
    assert [one.kind for one in read(f"Note: with less memory it {hint}.").messages] in ([], ["other"])


def test_a_code_that_was_handed_up_beats_the_figures_of_the_program_that_passes_it_on():
    text = "Memory allocation error on worker 0: std::bad_alloc: {}out of memory\n- Free memory: 11310923776\n"
    (message,) = read(text.format("cudaErrorMemoryAllocation: ")).messages
    assert (message.kind, message.refused_by) == ("cuda-driver", "device")


def test_every_kind_has_a_layer_or_none():
    assert {kind: refused_by(kind, "") for kind in KINDS} == dict(LAYERS)


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("cudaErrorMemoryAllocation: out of memory", ["nvidia-smi --query-compute-apps=pid,used_memory --format=csv"]),
        ("hipErrorOutOfMemory: out of memory", ["rocm-smi --showpids"]),
        ("UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", ["xpu-smi ps"]),
        ("halMemAlloc failed: device_id=7, size=4096", ["npu-smi info"]),
        ("VK_ERROR_OUT_OF_DEVICE_MEMORY", []),
        ("Attempting to reserve 6.14G at the bottom of memory. That was not possible.", []),
        ("ollama: CUDA error: out of memory", ["nvidia-smi --query-compute-apps=pid,used_memory --format=csv"]),
        ("RuntimeError: CUDA error: out of memory", ["oomscope run your_script.py"]),
        ("frobnicator: GPU memory allocation failed", ["nvidia-smi --query-compute-apps=pid,used_memory --format=csv"]),
    ],
)
def test_the_tool_that_lists_processes_is_the_one_of_the_device_that_refused(text: str, tool: list[str]):
    (message,) = read(f"{text}\n").messages
    assert next_commands_after(message) == tool


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.batch.", "sacct -j JOBID"),
        ("=>> PBS: job killed: mem 4096kb exceeded limit 2048kb", "qstat -fx JOBID"),
        ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", "bjobs -l JOBID"),
        ("Last State: Terminated\nReason: OOMKilled\nExit Code: 137", "kubectl describe pod POD"),
        ("Process finished with exit code 137", "sudo dmesg"),
    ],
)
def test_after_a_kill_the_one_is_asked_who_did_it(text: str, command: str):
    (message,) = read(f"{text}\n").messages
    assert [one[: len(command)] for one in next_commands_after(message)] == [command]


@pytest.mark.parametrize(
    "text",
    [
        "Your session crashed after using all available RAM.",
        "Ran out of memory in memory space hbm. Used 29.80G of 7.98G hbm. Exceeded hbm capacity by 21.82G.",
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 1 'invalid argument'",
        "Remaining 4096 kvcache tokens, but your prompt requires 8192 new tokens, please request later!",
    ],
)
def test_where_no_command_tells_more_none_is_named(text: str):
    (message,) = read(f"{text}\n").messages
    assert next_commands_after(message) == []


def test_of_a_sentence_that_only_names_the_card_no_refusal_is_claimed():
    (message,) = read("at the 17th frame my GPU is out of memory and crashed\n").messages
    assert message.kind == "cuda-driver"
    assert [one.code for one in message.proves] == ["message_proofs.unknown_words_card"]
