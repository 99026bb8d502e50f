"""One failure is told once: copies, what comes of it, and what is but supposed are no failures of their own."""

from __future__ import annotations

import pytest

from tests.messages.comparing import number, read
from tests.messages.test_logs import GIB, MESSAGE, MIB

ADVICE = MESSAGE.index(" If reserved")
GROWTH = "E cuda_driver.cc:802] failed to allocate 2.00G (2147483648 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY"
WANTED = "W bfc_allocator.cc:457] Allocator (GPU_0_bfc) ran out of memory trying to allocate 640.00MiB."
CHOSEN = (
    "kernel: oom-kill:constraint=CONSTRAINT_{},nodemask=(null),cpuset={path},mems_allowed=0,oom_memcg={path},"
    "task_memcg={path},task=python3,pid={},uid=0"
)


@pytest.mark.parametrize("cut", [ADVICE + 20, ADVICE + 60, ADVICE - 30, ADVICE - 62])
@pytest.mark.parametrize("end", ["", "...", "…", "`"])
def test_a_copy_that_is_cut_off_is_no_second_failure(cut: int, end: str):
    (message,) = read(f"{MESSAGE}\n\nreported:\n* **Message:** {MESSAGE[:cut]}{end}").messages
    assert message.times == 2


@pytest.mark.parametrize("end", ["...', 'name': 'OutOfMemoryError', 'text': '", "…\n\n"])
def test_a_copy_that_is_cut_off_before_the_whole_one_is_no_second_failure(end: str):
    (message,) = read(f"{{'error': '{MESSAGE[: ADVICE - 62]}{end}{MESSAGE}'}}").messages
    assert (message.times, number(message, "allocated")) == (2, round(18.25 * GIB))


def test_a_cut_message_with_another_size_is_another_failure():
    assert len(read(f"{MESSAGE}\nagain: {MESSAGE.replace('3.25', '3.75')[: ADVICE + 20]}").messages) == 2


REPORTED = MESSAGE.replace("torch.OutOfMemoryError:", "2026-01-02T03:04:05Z ERROR router: Server error:")


@pytest.mark.parametrize("log", [f"{MESSAGE}\n\n{REPORTED}\n", f"{REPORTED}\n{MESSAGE}\n"])
def test_an_exception_that_a_program_reports_word_for_word_is_one(log: str):
    (message,) = read(log).messages
    assert message.times == 2


@pytest.mark.parametrize(
    "log",
    [
        f"{REPORTED}\n{REPORTED}\n",
        f"{MESSAGE}\n{REPORTED.replace('Process 4711', 'Process 4712')}\n",
        f"{MESSAGE}\n" + "step\n" * 60 + f"{REPORTED}\n",
        f"{MESSAGE}\n{MESSAGE.replace('torch.OutOfMemoryError:', '| WARNING: ran out of memory with exception:')}\n",
    ],
)
def test_what_is_only_reported_again_or_elsewhere_may_be_another_failure(log: str):
    assert len(read(log).messages) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        "buffer_type_alloc_buffer: allocating 1792.00 MiB on device 1: cudaMalloc failed: out of memory",
        "ggml_vulkan: Device memory allocation of size 1879048192 failed.\n"
        "ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory",
        "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 1879048192",
    ],
)
def test_what_a_cache_was_refused_is_the_memory_that_refused(refusal: str):
    (message,) = read(f"{refusal}\nllama_kv_cache_init: failed to allocate buffer for kv cache\n").messages
    assert (message.kind == "serving-budget", number(message, "requested")) == (False, 1792 * MIB)


FIT = "common_fit_params: failed to fit params to free device memory: n_gpu_layers already set by user to 99, abort"
REFUSED = "ggml_vulkan: Device memory allocation of size 1879048192 failed."


def test_an_engine_that_found_no_settings_that_fit_has_but_warned_of_the_refusal_that_follows():
    (message,) = read(f"{FIT}\n{'loading' * 9}\n{REFUSED}\n").messages
    assert (message.kind, message.line) == ("cuda-driver", 3)
    assert [one.kind for one in read(f"{FIT}\n").messages] == ["serving-budget"]
    assert [one.kind for one in read(f"{REFUSED}\n{FIT}\n").messages] == ["cuda-driver", "serving-budget"]


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("slurmstepd: error: Detected 1 oom_kill event in StepId={}. Some of the step tasks have been OOM Killed.",
         "4711.0", "4711.batch"),
        ("ResourceExhaustedError: OOM when allocating tensor with shape[{},64]", "4711", "4712"),
        ("RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM {}", "Allocation failed for size::939524096 (896)MB",
         "OOM: No enough memory for defragment."),
    ],
)  # fmt: skip
def test_what_names_another_tensor_or_step_is_another_failure(text: str, one: str, other: str):
    assert len(read(f"{text.format(one)}\nprose\n{text.format(other)}\n").messages) == 2
    assert len(read(f"{text.format(one)}\nprose\n{text.format(one)}\n").messages) == 1


def test_the_exact_size_counts_where_the_rounded_one_is_printed_first():
    text = (
        "buffer_type_alloc_buffer: allocating 1234.57 MiB on device 2: cudaMalloc failed: out of memory\n"
        "gallocr_reserve_n: failed to allocate CUDA2 buffer of size {}\n"
    )
    (exact,) = read(text.format(1294543210)).messages
    assert (number(exact, "requested"), exact.reading.figures["requested"].off_by) == (1294543210, 0)
    (rounded,) = read(text.format(1294000000)).messages
    assert number(rounded, "requested") == round(1234.57 * MIB), "not what was rounded"


def test_a_refusal_that_is_repeated_after_what_came_of_it_is_one():
    growth, wanted = read(f"{GROWTH}\n{WANTED}\n{GROWTH}\n").messages
    assert (growth.times, wanted.times) == (2, 1)
    assert (number(growth, "requested"), number(wanted, "requested")) == (2 * GIB, 640 * MIB)


@pytest.mark.parametrize(
    "between",
    [
        "CRITICAL Got fatal signal from worker processes, shutting down. See stack trace above for root cause issue.",
        "[2026-01-02 03:04:05] Received sigquit from a child process. It usually means the child failed.",
        "W torch/distributed/elastic: Sending process 4711 closing signal SIGTERM",
        "[INFO] [launch.py:316:sigkill_handler] Killing subprocess 4711",
    ],
)
@pytest.mark.parametrize("kill", ["Killed", "exits with return code = -9"])
def test_a_program_that_ends_its_own_processes_after_a_failure_was_not_killed_for_memory(between: str, kill: str):
    (message,) = read(f"{MESSAGE}\n{between}\n{kill}\n").messages
    assert message.kind == "torch-cuda"
    assert [one.kind for one in read(f"{between}\n{kill}\n").messages] == ["oom-killer"], "nothing failed before"


def test_a_kill_of_which_nothing_is_said_is_told_beside_the_failure_before():
    assert [one.kind for one in read(f"{MESSAGE}\nretrying with batch size 4\nKilled\n").messages] == [
        "torch-cuda",
        "oom-killer",
    ]


@pytest.mark.parametrize(
    "advice",
    [
        "If you encounter CUDA out of memory, try to set --tile with a smaller number.",
        "If you run into a `CUDA out of memory` error, lower --batch.",
        "Hint: when you see an error like CUDA error: out of memory, restart.",
        "In case of OOM errors use --lowvram.",
        "If you run out of memory, use fewer workers.",
        "If out of memory errors occur, lower --batch.",
        "Should you get std::bad_alloc, add RAM.",
    ],
)
def test_what_may_happen_has_not(advice: str):
    assert read(f"{advice}\n").messages == ()
    (message,) = read(f"MemoryError: Unable to allocate 3.00 GiB for an array with shape (3,)\n{advice}\n").messages
    assert message.kind == "host-ram"


@pytest.mark.parametrize(
    "said",
    [
        "When I run it, I get CUDA out of memory",
        f"If you get {MESSAGE}, what do you do?",
        "diff: CUDA out of memory",
    ],
)
def test_what_was_met_has_happened(said: str):
    assert [one.kind for one in read(f"{said}\n").messages] == ["torch-cuda"]


@pytest.mark.parametrize("path", ["/", f"/kubepods.slice/{'burstable-pod' * 9}.slice/cri-{'0a' * 32}.scope"])
def test_whom_the_kernel_chose_is_told_however_long_the_paths_before_it_are(path: str):
    log = f"{CHOSEN.format('MEMCG', 4242, path=path)}\n{CHOSEN.format('NONE', 4343, path=path)}\n"
    first, second = read(log).messages
    assert (first.reading.values["pid"], first.reading.values["name"]) == ("4242", "python3")
    assert (second.reading.values["pid"], "group" in second.reading.values) == ("4343", False)
    assert first.kind == second.kind == "oom-killer"


def test_a_line_of_the_kernel_that_is_cut_off_is_a_kill_of_somebody():
    (message,) = read(CHOSEN.format("MEMCG", 4242, path="/x")[:120]).messages
    assert (message.kind, "pid" in message.reading.values) == ("oom-killer", False)


@pytest.mark.parametrize(
    ("below", "messages"),
    [
        ("Even with a batch size of 1, still cuda out of memory errors come.", 1),
        ("I don't know why I get the CUDA out of memory error there.", 1),
        ("RuntimeError: CUDA error: out of memory", 2),
        ("\n" * 9 + "Even with a batch size of 1, still cuda out of memory errors come.", 2),
    ],
)
def test_a_sentence_about_the_refusal_above_it_is_no_second_one(below: str, messages: int):
    refused = "# failed to allocate 17.79G (19104890880 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    assert len(read(f"{refused}\n\n{below}\n").messages) == messages


@pytest.mark.parametrize(("built_in", "kind"), [("external/org_tensorflow/", "jax"), ("", "tensorflow")])
def test_a_driver_that_refuses_jax_is_no_tensorflow(built_in: str, kind: str):
    (message,) = read(f"E {built_in}tensorflow/stream_executor/cuda/{GROWTH[2:]}: out of memory\n").messages
    assert (message.kind, number(message, "requested")) == (kind, 2 << 30)


BFC = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 34.71GiB (rounded to 37274034432)requested by op"
REPLICA = "Execution of replica 0 failed: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 37274034352 bytes."
POOL = (
    "gpu_async_1 cuMemAllocAsync failed to allocate 1225195446464 bytes: RESOURCE_EXHAUSTED: : "
    "CUDA_ERROR_OUT_OF_MEMORY: out of memory\n Reported by CUDA: Free memory/Total memory: 22635544576/85095874560"
)
STATS = "E gpu_cudamallocasync_allocator.cc:366] Stats: Limit:       0\nInUse:                 61982909300"


@pytest.mark.parametrize("log", [f"{BFC}\n{REPLICA}", f"{REPLICA}\n{BFC}", f"{POOL}\n{STATS}"])
def test_what_the_allocator_says_beside_a_failure_of_jax_is_of_jax(log: str):
    (message,) = read(f"{log}\n").messages
    assert message.kind == "jax"
    assert number(message, "requested") in (37274034432, 37274034352, 1225195446464)
    assert number(message, "allowed") is None


@pytest.mark.parametrize("log", [BFC, f"{BFC}\n" + "\n" * 80 + REPLICA])
def test_alone_its_allocator_is_called_tensorflows(log: str):
    assert read(f"{log}\n").messages[0].kind == "tensorflow"
