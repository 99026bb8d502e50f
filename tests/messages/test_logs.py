"""Messages in logs as they really are: wrapped, prefixed, coloured, escaped, interleaved, in other encodings."""

from __future__ import annotations

import json

import pytest

from oomscope.messages import OomMessage
from oomscope.messages.scan import AHEAD, CHUNK
from tests.messages.comparing import number, read

MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.25 GiB. GPU 1 has a total capacity of 23.65 GiB of"
    " which 1.75 GiB is free. Process 4711 has 2.50 GiB memory in use. Including non-PyTorch memory, this process has"
    " 19.38 GiB memory in use. Of the allocated memory 18.25 GiB is allocated by PyTorch, with 512.00 MiB allocated in"
    " private pools (e.g., CUDA Graphs), and 640.50 MiB is reserved by PyTorch but unallocated. If reserved but"
    " unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
GIB, MIB = 1 << 30, 1 << 20
SAYS = {
    "device": 1,
    "requested": round(3.25 * GIB),
    "total": round(23.65 * GIB),
    "free": round(1.75 * GIB),
    "others_in_use": round(2.5 * GIB),
    "process_in_use": round(19.38 * GIB),
    "allocated": round(18.25 * GIB),
    "private_pools": 512 * MIB,
    "reserved": round(18.25 * GIB) + round(640.5 * MIB),
}


def the_message(log: str | bytes) -> OomMessage:
    (message,) = read(log).messages
    assert {name: number(message, name) for name in SAYS} == SAYS
    assert message.kind == "torch-cuda"
    return message


def wrapped(text: str, width: int, prefix: str = "") -> str:
    return "\n".join(prefix + text[start : start + width] for start in range(0, len(text), width))


PREFIXES = [
    "[rank3]: ",
    "2026-02-03 04:05:06,789 ERROR ",
    "[2026-02-03T04:05:06Z] ",
    "(EngineCore_DP0 pid=738) ERROR 01-26 09:25:37 [core.py:935] ",
    "(RayWorkerWrapper pid=4242, ip=10.0.0.7) ",
    "trainer-1  | ",
    "[1,3]<stderr>:",
    "[default3]:",
    "E   ",
    "> ",
    "#12 34.56 ",
    "Feb  3 04:05:06 node7 train[4242]: ",
]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefixes_do_not_matter(prefix: str):
    before = f'{prefix}  File "train.py", line 3, in <module>\n{prefix}    main()\n'
    message = the_message(f"{before}{prefix}{MESSAGE}\n{prefix}done\n")
    assert message.line == 3
    assert message.text.startswith("CUDA out of memory. Tried to allocate 3.25 GiB. GPU 1")


@pytest.mark.parametrize("width", [25, 33, 61, 79, 80, 120])
@pytest.mark.parametrize("prefix", ["", "[rank3]: ", "> ", "(Worker pid=17) ", "# ", "    // ", "--\t"])
def test_lines_may_be_broken_anywhere(width: int, prefix: str):
    the_message(wrapped(MESSAGE, width, prefix) + "\n")


def test_a_comment_goes_on_with_the_process_that_its_first_line_names():
    lines = [f"# [rank{rank}]: CUDA out of memory. Tried to\n# allocate {rank}.50 GiB (GPU {rank};" for rank in (3, 2)]
    log = read("\n# 24.00 GiB total capacity)\n".join([*lines, ""]))
    assert [(one.rank, number(one, "requested")) for one in log.messages] == [
        (3, round(3.5 * GIB)),
        (2, round(2.5 * GIB)),
    ]


@pytest.mark.parametrize("states", ["# running\n# Killed\n", "// running\n// killed\n// done\n"])
def test_a_word_in_a_comment_is_no_line_of_a_shell(states: str):
    assert read(f"Killed of memory\n{states}").messages == ()
    assert [one.line for one in read(f"{states}Killed\n").messages] == [len(states.splitlines()) + 1]


def test_a_terminal_that_pads_lines_breaks_words_with_blanks():
    the_message("".join(part + " " * 120 for part in wrapped(MESSAGE, 61).split("\n")))


@pytest.mark.parametrize("mark", ["\x1b", "^[", "\\x1b", "\\u001b", "\\033"])
def test_colours_do_not_matter(mark: str):
    coloured = MESSAGE.replace("3.25", f"{mark}[1;31m3.25{mark}[0m").replace("18.25", f"{mark}[33m18.25{mark}[0m")
    the_message(f"{mark}[31m{coloured}{mark}[0m\n")


def test_colours_whose_escape_was_lost_do_not_matter():
    the_message(f"[31mERROR[0m {MESSAGE.replace('3.25', '[1m3.25[0m')}\n")


@pytest.mark.parametrize("times", [1, 2])
def test_a_traceback_in_a_json_string_is_read(times: int):
    text = f'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n{MESSAGE}\n'
    for _ in range(times):
        text = json.dumps({"level": "error", "exc_info": text})
    message = the_message(f'{{"level": "info"}}\n{text}\n')
    assert message.line == 2
    assert "\\n" not in message.text


def test_a_json_line_of_megabytes_is_no_trouble():
    text = json.dumps({"before": "x" * (3 << 20), "error": f"a\n{MESSAGE}\nb", "after": "y" * (3 << 20)})
    assert the_message(f"one\n{text}\n").line == 2


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_what_powershell_writes_is_read(encoding: str):
    the_message(f"\ufeffsome line\r\n{MESSAGE}\r\n".encode(encoding))


def test_entities_of_html_are_read():
    the_message(MESSAGE.replace("(", "&#40;").replace(")", "&#x29;"))


def interleaved(*lines: list[str]) -> str:
    longest = max(map(len, lines))
    return "".join(f"{one[index]}\n" for index in range(longest) for one in lines if index < len(one))


def test_processes_that_write_into_each_other_are_kept_apart():
    """Each figure goes to its own rank, though every line is broken and the ranks take turns."""
    ranks = [wrapped(MESSAGE.replace("3.25", f"{rank + 1}.25"), 60, f"[rank{rank}]: ").split("\n") for rank in range(4)]
    messages = read(interleaved(*ranks)).messages
    assert [message.rank for message in messages] == [0, 1, 2, 3]
    for rank, message in enumerate(messages):
        assert {name: number(message, name) for name in SAYS} == {**SAYS, "requested": (rank + 1) * GIB + GIB // 4}


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("[rank5]: ", 5),
        ("rank 5: ", 5),
        ("[Rank 5] ", 5),
        ("(VllmWorker rank=5 pid=17) ", 5),
        ("[1,5]<stderr>:", 5),
        ("global_rank=5 ", 5),
        ("[default5]:", None),
        ("local_rank: 5 ", None),
        ("lora_rank=5 ", None),
        ("node07:12:34 [5] ", None),
        ("", None),
    ],
)
def test_only_a_global_rank_is_one(prefix: str, rank: int | None):
    assert the_message(f"{prefix}{MESSAGE}\n").rank == rank


def test_a_traceback_printed_again_is_one_failure():
    log = f"ERROR {MESSAGE}\nTraceback (most recent call last):\n  ...\n{MESSAGE}\n"
    assert the_message(log).times == 2


def test_failures_in_a_loop_are_told_apart():
    line = MESSAGE.partition(": ")[2]
    log = "".join(f"| WARNING: ran out of memory: {line.replace('3.25', f'3.2{n}')}\n" for n in range(4))
    assert [message.line for message in read(log).messages] == [1, 2, 3, 4]


def test_a_message_across_two_chunks_is_read_once():
    for before in range(CHUNK - 700, CHUNK + 100, 97):
        the_message(b"x" * 99 + b"\n" * (before - 99) + MESSAGE.encode() + b"\n")


def test_messages_near_the_end_of_a_chunk_are_read_once_each():
    texts = [MESSAGE.replace("3.25", f"3.{n}5") for n in range(9)]
    log = b"\n" * (CHUNK - AHEAD - 2_000) + "\n".join(texts).encode()
    assert len(read(log).messages) == 9


def test_lines_are_counted_over_chunks():
    log = b"one line\n" * 2_000_000 + MESSAGE.encode()
    found = read(log)
    assert found.messages[0].line == 2_000_001
    assert found.lines == 2_000_001
    assert found.size == len(log)


def test_where_nothing_is_printed_nothing_is_known():
    (message,) = read("torch.cuda.OutOfMemoryError: CUDA out of memory.\n").messages
    assert message.kind == "torch-cuda"
    assert message.reading.figures == {}


@pytest.mark.parametrize("cut", range(60, len(MESSAGE.partition("If reserved")[0]), 7))
def test_a_message_that_was_cut_says_what_is_left_of_it(cut: int):
    """No figure changes, whatever is missing."""
    (message,) = read(MESSAGE[:cut]).messages
    found = {name: number(message, name) for name in SAYS}
    assert all(found[name] in (None, SAYS[name]) for name in SAYS)


def test_2_to_the_64_bytes_are_unknown():
    (message,) = read(MESSAGE.replace("19.38 GiB", "17179869184.00 GiB")).messages
    assert message.figure("process_in_use") is None


@pytest.mark.parametrize(
    "line",
    [
        "epoch 3: loss 0.137, memory: 10237, allocated 12.3 GiB",
        "GPU memory utilization 0.9, Available KV cache memory: 12.30 GiB",
        "step 137 of 1370, lr 1e-9, -9.5 dB",
        "Memory usage: 3.2 GiB; shared memory of the block: 48 KiB",
        "exit code 0, status 1379",
        "we skilled workers signed the memory of understanding",
        "Loading MemoryErrorHandler, raises (MemoryError, OSError)",
    ],
)
def test_a_line_that_only_names_memory_is_no_message(line: str):
    assert read(f"{line}\n" * 3).messages == ()


def test_unknown_words_say_that_they_are_unknown_and_only_where_nothing_else_is_said():
    (message,) = read("frobnicator: out of memory, sorry\n").messages
    assert (message.kind, message.reading.wording) == ("other", "other.unknown")
    assert len(read(f"frobnicator: out of memory, sorry\n{MESSAGE}\n").messages) == 1


@pytest.mark.parametrize(
    ("line", "figures"),
    [
        (
            "frobnicator: insufficient GPU memory, 3.5 GiB required, only 512 MiB available",
            {"requested": 7 << 29, "free": 512 << 20},
        ),
        ("frobnicator: not enough memory: needed 3 GiB, free 1.5 GiB", {"requested": 3 << 30, "free": 3 << 29}),
        (
            "frobnicator: not enough free memory, capacity 8 GiB, total: 3 GiB, free: 1 GiB",
            {"total": 8 << 30, "free": 1 << 30},
        ),
        ("frobnicator: insufficient memory, 7 GiB for weights and 2 GiB for the cache", {}),
        ("frobnicator: not enough memory; cuda:0 free 1 GiB, cuda:1 free 2 GiB", {}),
    ],
)
def test_unknown_words_give_the_sizes_that_are_named_right_beside_them(line: str, figures: dict[str, int]):
    """A size without a name, or two of one name, may be anything."""
    (message,) = read(f"{line}\n").messages
    assert {name: figure.value for name, figure in message.reading.figures.items()} == figures


@pytest.mark.parametrize(
    "line",
    [
        "memory allocation on device 0 is deferred",
        "Allocation on device: 12 blocks",
        "Allocation on device cuda:0 took 3 ms",
        "OSError: [Errno 28] No space left on device: '/data/checkpoint.pt'",
        "there is not enough evidence that memory helps",
        "Sleep mode freed 43.82 GiB, 4.11 GiB memory is still in use",
        "buffer allocation failures: 0",
        "RuntimeError: MemoryUsageTracker: Cannot snapshot - capture is not active",
        "InvalidOperation: Failed to create OpenCL buffer: -45.3",
        "[719] Call to cuMemAlloc results in CUDA_ERROR_LAUNCH_FAILED",
        "GPU KV cache usage: 100.0%",
        "cublasCreate returned CUBLAS_STATUS_SUCCESS",
        "raises CudaMemoryError when loading",
    ],
)
def test_words_that_messages_share_with_others_are_no_message(line: str):
    assert read(f"{line}\nepoch 3\n").messages == ()


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        (f"{MESSAGE} rank=3\n", 3),
        (f"{MESSAGE}\n rank=3\nError: ShardCannotStart\n", 3),
        (f"{MESSAGE}\nstep 7 done rank=3\n", None),
        (f"{MESSAGE}\n local_rank=3\n", None),
    ],
)
def test_a_structured_logger_puts_the_rank_behind_its_text(text: str, rank: int | None):
    assert the_message(text).rank == rank


def test_one_failure_in_two_unknown_wordings_is_one_message():
    (message,) = read("frobnicator: GPU memory allocation failed (might be due to insufficient memory)\n").messages
    assert (message.kind, message.reading.wording) == ("cuda-driver", "other.unknown")


def test_unknown_words_name_the_device_where_they_name_one_only():
    (one,) = read("frobnicator: unable to allocate 3 GiB on GPU 2\n").messages
    (several,) = read("frobnicator: unable to allocate 3 GiB on GPU 2, or on GPU 3\n").messages
    assert (one.reading.device, several.reading.device) == (2, None)


def test_a_code_that_came_of_a_refusal_is_no_failure_of_its_own():
    """Else it would be said that the machine's memory was short, and the card not involved."""
    (message,) = read(
        "cu->cuMemAlloc(&data, size) failed -> CUDA_ERROR_OUT_OF_MEMORY: out of memory\nstep: Cannot allocate memory\n"
    ).messages
    assert message.kind == "cuda-driver"
    assert [one.kind for one in read("step: Cannot allocate memory\n").messages] == ["host-ram"]


def test_an_error_of_memory_that_hides_another_code_is_not_of_the_machines_memory():
    text = (
        "MemoryError: Try lowering `target_partition_size`\nOriginal error:\nstd::bad_alloc: CUDA error (failed to"
        " allocate 16 bytes) at: x.cpp:43: cudaErrorIllegalAddress an illegal memory access was encountered\n"
    )
    assert all(message.kind != "host-ram" for message in read(text).messages)


def test_a_date_of_another_script_is_never_the_rest_of_a_size():
    """Else a size would be a hundred times as large."""
    text = (
        "10月 19 22:21:15 gpu ollama[603]: ggml_gallocr_reserve_n: failed to allocate CUDA3 buffer of size 8991031296\n"
        "10月 19 22:21:15 gpu ollama[603]: llama_new_context_with_model: failed to allocate compute buffers\n"
    )
    unlike = text.replace("10月 19", "第7日 19").replace("第", "10")
    for one in (text, unlike):
        (message,) = read(one).messages
        assert message.reading.figures["requested"].value == 8991031296


def test_words_that_end_in_memory_error_are_not_pythons():
    (message,) = read("loading fails with Vulkan out-of-memory error\n").messages
    assert message.kind == "cuda-driver"


@pytest.mark.parametrize("line", ["RuntimeError: DataLoader worker (pid 25) is killed by signal: Segmentation fault"])
def test_a_worker_that_crashed_was_not_short_of_memory(line: str):
    assert read(f"{line}\n").messages == ()


def test_vague_words_say_nothing_beside_vague_words_that_name_a_place():
    (message,) = read("frobnicator: out of VRAM\nfrobnicator: it may crash as out of memory\n").messages
    assert (message.kind, message.refused_by) == ("cuda-driver", "device")
