"""What is said to be proven holds for everything that the printed figures may stand for, and nothing else is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.messages import OomMessage
from oomscope.messages.figures import Figure, exact, parse_figure
from oomscope.wording import say
from tests.messages.comparing import read

GIB = 1 << 30


def message(
    requested: str,
    total: str = "24.00 GiB",
    free: str = "1.00 GiB",
    allocated: str = "20.00 GiB",
    unallocated: str = "1.00 GiB",
    more: str = "",
    advice: str = "PYTORCH_ALLOC_CONF=expandable_segments:True",
    before: str = "",
) -> OomMessage:
    (found,) = read(
        f"{before}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {requested}. GPU 0 has a total capacity"
        f" of {total} of which {free} is free. {more}Of the allocated memory {allocated} is allocated by PyTorch, and"
        f" {unallocated} is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try"
        f" setting {advice} to avoid fragmentation.\n"
    ).messages
    for note in (*found.proves, *found.advice, *found.cannot_tell):
        assert "{" not in say(note)
    return found


def proven(found: OomMessage) -> set[str]:
    return {note.code.partition(".")[2] for note in found.proves}


def worth(found: OomMessage) -> list[str]:
    return [note.code.partition(".")[2] for note in found.advice]


@pytest.mark.parametrize(
    ("values", "codes", "advice"),
    [
        ({"requested": "25.00 GiB"}, {"larger_than_card"}, ["cannot_help"]),
        ({"requested": "5.00 GiB"}, {"live_and_request"}, ["cannot_help"]),
        ({"requested": "3.00 GiB"}, {"nowhere"}, ["cannot_help"]),
        ({"requested": "1.50 GiB", "total": "22.00 GiB"}, {"only_together"}, ["might_help"]),
        ({"requested": "1.50 GiB", "unallocated": "2.00 GiB"}, {"free_inside"}, ["fits_here"]),
        ({"requested": "0.50 GiB", "unallocated": "0.10 GiB"}, {"room_on_card"}, ["beside_the_point"]),
        (
            {"requested": "1.50 GiB", "allocated": "16.00 GiB", "unallocated": "0.10 GiB"},
            {"nowhere", "outside"},
            ["cannot_help"],
        ),
        (
            {"requested": "1.50 GiB", "unallocated": "0.10 GiB", "more": "Process 1 has 2.00 GiB memory in use. "},
            {"nowhere", "others"},
            ["cannot_help"],
        ),
        (
            {"requested": "0.50 GiB", "unallocated": "0.10 GiB", "more": "20.20 GiB allowed; "},
            {"live_and_request_capped", "cap_not_card"},
            ["cannot_help"],
        ),
        ({"requested": "21.00 GiB", "more": "20.20 GiB allowed; "}, {"larger_than_cap"}, ["cannot_help"]),
        ({"requested": "0.90 GiB", "total": "8.00 GiB", "free": "0 bytes"}, {"free_inside", "spilled"}, ["undecided"]),
    ],
)
def test_the_figures_prove(values: dict[str, str], codes: set[str], advice: list[str]):
    found = message(**values)
    assert proven(found) == codes
    assert worth(found) == advice


def test_what_lies_within_rounding_is_not_said():
    """A request of 1.00 GiB and 1.00 GiB free inside: either may be the larger."""
    found = message("1.00 GiB", unallocated="1.00 GiB", free="0.10 GiB")
    assert "free_inside" not in proven(found)
    assert "nowhere" not in proven(found)
    assert "larger_than_card" not in proven(message("24.00 GiB", allocated="0 bytes", unallocated="0 bytes"))
    assert "larger_than_card" in proven(message("24.02 GiB", allocated="0 bytes", unallocated="0 bytes"))


def test_idle_blocks_of_private_pools_are_not_taken_for_live_ones():
    """The printed figure has the pools' idle blocks in it."""
    assert "live_and_request" in proven(message("5.00 GiB"))
    (found,) = read(
        "CUDA out of memory. Tried to allocate 5.00 GiB. GPU 0 has a total capacity of 24.00 GiB of which 1.00 GiB is"
        " free. Of the allocated memory 20.00 GiB is allocated by PyTorch, with 6.00 GiB allocated in private pools"
        " (e.g., CUDA Graphs), and 1.00 GiB is reserved by PyTorch but unallocated."
    ).messages
    assert not proven(found) & {"live_and_request", "nowhere"}
    assert "free_in_pools" in proven(found)


def test_a_cap_that_was_reached_within_rounding_is_said_so():
    near = message("1.00 GiB", allocated="9.00 GiB", unallocated="0 bytes", free="9.00 GiB", more="10.00 GiB allowed; ")
    assert proven(near) == {"cap_near"}
    below = message(
        "1.00 GiB", allocated="7.00 GiB", unallocated="0 bytes", free="9.00 GiB", more="10.00 GiB allowed; "
    )
    assert proven(below) == {"room_on_card"}


def test_where_what_is_reserved_is_not_printed_the_cap_stays_possible():
    text = (
        "CUDA out of memory. Tried to allocate 94.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 4.03 GiB is"
        " free. {} GiB allowed; Of the allocated memory 2.75 GiB is allocated by PyTorch…\n"
    )
    for allowed, gap in (("3.00", "near_cap"), ("8.00", "why_refused")):
        (found,) = read(text.format(allowed)).messages
        assert proven(found) == {"room_on_card"}
        codes = [note.code.partition(".")[2] for note in found.cannot_tell]
        assert codes == ["who_holds", gap]
    assert "near_cap" not in {
        note.code.partition(".")[2] for note in message("0.50 GiB", unallocated="0.10 GiB").cannot_tell
    }


def test_a_process_that_does_not_see_itself_proves_nothing_of_others():
    printed = "Including non-PyTorch memory, this process has {} memory in use. "
    assert "unnamed_others" not in proven(message("2.00 GiB", more=printed.format("0 bytes")))
    assert "unnamed_others" in proven(message("2.00 GiB", total="44.00 GiB", more=printed.format("21.00 GiB")))


def test_advice_is_judged_only_where_it_is_given():
    (silent,) = read("RuntimeError: CUDA error: out of memory\n").messages
    assert silent.advice == ()
    (said,) = read("RuntimeError: CUDA error: out of memory\nFor debugging consider CUDA_LAUNCH_BLOCKING=1.\n").messages
    assert worth(said) == ["blocking"]
    assert worth(message("5.00 GiB", advice="nothing")) == []


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("MPS backend out of memory (MPS allocated: 9.00 GiB, other allocations: 1.00 GiB, max allowed: 10.50 GiB)."
         " Tried to allocate 1.00 GiB on private pool.", {"mps_cap"}),
        ("MPS backend out of memory (MPS allocated: 9.00 GiB, other allocations: 1.00 GiB, max allowed: 11.00 GiB)."
         " Tried to allocate 1.00 GiB on private pool.", {"mps_near"}),
        ("MPS backend out of memory (MPS allocated: 1.00 GiB, other allocations: 3.00 GiB, max allowed: 20.00 GiB)."
         " Tried to allocate 1.00 GiB on private pool.", {"mps_below", "mps_outside_pool"}),
        ("out of resource: shared memory, Required: 131072, Hardware limit: 101376.", {"on_chip"}),
        ("failed to alloc 34359738368 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory", {"pinned_sized"}),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", {"library_alloc"}),
        ("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`", {"library"}),
        ("tensorflow/core/framework: Allocation of 1258291200 exceeds 10% of free system memory.", {"only_a_warning"}),
        ("subprocess: died with <Signals.SIGKILL: 9>.", {"signal"}),
        ("Memory cgroup out of memory: Killed process 7 (python) total-vm:9kB, anon-rss:5kB", {"killed_in_group"}),
        ("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=python,pid=7,uid=0", {"killed_at_limit"}),
        ("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python,pid=7,uid=0", {"killed_of_machine"}),
        ("HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed. Available Free mem : 24 MB", {"driver_free"}),
        ("Error while calling cudaMalloc(&data, n) in file /x/a.cpp:2. code: 2, reason: out of memory", {"driver"}),
        ("Attempting to reserve 6.14G at the bottom of memory. That was not possible.", {"jax_reserve_only"}),
    ],
)  # fmt: skip
def test_other_messages_prove(text: str, codes: set[str]):
    (found,) = read(text).messages
    assert proven(found) == codes


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Free memory on device cuda:0 (1.54/22.05 GiB) on startup is less than desired GPU memory utilization"
         " (0.9, 19.84 GiB).", "0.06"),
        ("Free memory on device cuda:0 (19.77/22.05 GiB) on startup is less than desired GPU memory utilization"
         " (0.9, 19.84 GiB).", "0.89"),
    ],
)  # fmt: skip
def test_the_share_that_would_start_is_rounded_down(text: str, share: str):
    (found,) = read(text).messages
    assert proven(found) == {"startup"}
    assert share in say(found.advice[0])


def test_an_engine_on_processors_compares_the_machines_memory():
    (found,) = read(
        "Available memory on node 1 (4.75/18.0 GiB) on startup is less than desired CPU memory utilization (0.92,"
        " 16.56 GiB). On the CPU backend, the `--gpu-memory-utilization` flag controls the fraction of CPU memory"
    ).messages
    assert (found.kind, found.reading.device, proven(found)) == ("serving-budget", None, {"startup_host"})
    assert "0.26" in say(found.advice[0])


LOADING = (
    "Traceback (most recent call last):\n"
    '  File "serve.py", line 9, in <module>\n    model.to("cuda")\n'
    '  File "/x/site-packages/torch/nn/modules/module.py", line 1340, in to\n    return self._apply(convert)\n'
    '  File "/x/site-packages/torch/nn/modules/module.py", line 900, in _apply\n    module._apply(fn)\n'
    '  File "/x/site-packages/torch/nn/modules/module.py", line 1326, in convert\n    return t.to(\n'
)


def test_weights_that_do_not_fit_are_told_by_the_traceback():
    found = message("5.00 GiB", before=LOADING)
    assert proven(found) == {"weights"}
    assert found.script == "serve.py"
    assert "during_weights" in proven(message("3.00 GiB", before=LOADING))


@pytest.mark.parametrize(
    ("mine", "named", "process", "others"),
    [
        ("7.00 GiB", ["1.00 GiB", "2.00 GiB"], "7.00 GiB", "3.00 GiB"),
        (None, ["21.50 GiB", "1.00 GiB"], "21.50 GiB", "1.00 GiB"),
        (None, ["21.50 GiB", "22.50 GiB"], None, None),
        (None, ["1.00 GiB", "0.50 GiB"], None, "1.50 GiB"),
    ],
)
def test_processes_are_told_apart_only_where_arithmetic_does(
    mine: str | None, named: list[str], process: str | None, others: str | None
):
    more = "".join(f"Process {index + 1} has {size} memory in use. " for index, size in enumerate(named))
    if mine:
        more += f"Including non-PyTorch memory, this process has {mine} memory in use. "
    total = "45.00 GiB" if named == ["21.50 GiB", "22.50 GiB"] else "24.00 GiB"
    found = message("5.00 GiB", total=total, more=more)
    for name, size in (("process_in_use", process), ("others_in_use", others)):
        expected = parse_figure(size.replace(" ", "")) if size else None
        figure = found.figure(name)
        assert (figure and figure.value) == (expected and expected.value)


@given(st.integers(0, 1 << 44), st.sampled_from(["KiB", "MiB", "GiB"]), st.integers(0, 3))
def test_a_figure_holds_the_size_that_was_printed(size: int, unit: str, decimals: int):
    scale = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
    figure = parse_figure(f"{size / scale:.{decimals}f}{unit}")
    assert figure is not None
    assert figure.low - 1 <= size <= figure.high + 1
    assert figure.off_by <= scale // 2 // 10**decimals + 2


@given(*[st.integers(0, 1 << 40)] * 4)
def test_a_comparison_is_certain_or_not_made(a: int, b: int, c: int, d: int):
    one, two = Figure(min(a, b), min(a, b), max(a, b)), Figure(min(c, d), min(c, d), max(c, d))
    if one.exceeds(two):
        assert min(a, b) > max(c, d)
    if (one - two).exceeds(exact(0)):
        assert one.exceeds(two)
    assert (one + two).low == one.low + two.low


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("23.65GiB", round(23.65 * GIB)),
        ("0bytes", 0),
        ("512bytes", 512),
        ("1024.00KiB", 1 << 20),
        ("5.56GB", round(5.56 * GIB)),
        ("2.5G", GIB * 5 // 2),
        ("1900,00MiB", 1900 << 20),
        ("1,234,567bytes", 1234567),
        ("201.GiB", 201 * GIB),
        ("17179869184.00GiB", None),
        ("GiB", None),
    ],
)
def test_sizes_are_read_as_programs_print_them(text: str, value: int | None):
    figure = parse_figure(text)
    assert (None if figure is None else figure.value) == value


@pytest.mark.parametrize("cause", ["Cuda failure 2 'out of memory'", "Cuda failure 'out of memory'"])
def test_why_nccl_failed_stands_behind_the_name_of_its_error(cause: str):
    (found,) = read(
        "[rank7]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:275, unhandled cuda error (run with "
        "NCCL_DEBUG=INFO for details), NCCL version 2.20.5\n[rank7]: ncclUnhandledCudaError: Call to CUDA function"
        f" failed.\n[rank7]: Last error:\n[rank7]: {cause}\n"
    ).messages
    assert found.kind == "nccl"
    assert "nccl_unhandled" not in proven(found)
    assert "nccl" in proven(found)


def test_an_error_of_nccl_that_tells_no_more_proves_no_shortage():
    (found,) = read(
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 1 'invalid argument'"
    ).messages
    assert proven(found) == {"nccl_other_reason"}
    (found,) = read("ncclUnhandledCudaError: Call to CUDA function failed.").messages
    assert proven(found) == {"nccl_unhandled"}


def test_what_the_next_message_says_of_itself_is_not_said_of_this_one():
    """TensorFlow's allocator says that it goes on; the driver's line above does not."""
    driver, allocator = read(
        "cuda_driver.cc:830] failed to allocate 3.43G (3678928896 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of"
        " memory\nbfc_allocator.cc:239] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.96GiB with"
        " freed_by_count=0. The caller indicates that this is not a failure, but may mean that there could be"
        " performance gains if more memory were available.\n"
    ).messages
    assert proven(driver) == {"tensorflow_driver"}
    assert proven(allocator) == {"went_on"}


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (
            "[GPU] Exceeded max size of memory object allocation: requested 7516192768 bytes, but max alloc size"
            " supported by device is 4294959104 bytes.",
            {"one_block"},
        ),
        ("clBuildProgram failed: CL_OUT_OF_HOST_MEMORY", {"host_by_driver"}),
        (
            "warning: failed to mlock 1847910-byte buffer (after previously locking 0 bytes): Cannot allocate memory",
            {"host_locked"},
        ),
        (
            "Container killed by YARN for exceeding memory limits. 7.2 GB of 4.2 GB virtual memory used.",
            {"killed_by_yarn"},
        ),
    ],
)
def test_other_programs_figures_prove_no_more_than_they_say(text: str, codes: set[str]):
    """Virtual memory is address space; and drivers call failures of the host what is none."""
    (found,) = read(f"{text}\n").messages
    assert proven(found) == codes
    assert found.figure("process_in_use") is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Out of memory allocating 1,024 bytes (allocated so far: 512 bytes, limit set to: 1,280 bytes).", "own_limit"),
        (
            "Out of memory allocating 1,024 bytes (allocated so far: 128 bytes, limit set to: 1,280 bytes).",
            "named_program",
        ),
        (
            "Out of memory error on GPU 0. Cannot allocate 56.0MB memory on GPU 0, available memory is only 12.7MB.",
            "less_free",
        ),
        ("Remaining 4096 kvcache tokens, but your prompt requires 8192 new tokens", "cache_tokens"),
        ("the trainer was killed by the OOM killer", "killed_by_name"),
    ],
)
def test_what_a_program_says_of_its_own_figures_is_proven_before_whose_it_is(text: str, code: str):
    (found,) = read(f"{text}\n").messages
    assert proven(found) == {code}


def test_a_process_that_is_named_and_is_this_one_leaves_no_question_which():
    (found,) = read(
        "CUDA out of memory. Tried to allocate 912.00 MiB. GPU 0 has a total capacity of 79.14 GiB of which 306.75 MiB"
        " is free. Process 4711 has 78.84 GiB memory in use. Of the allocated memory 77.29 GiB is allocated by PyTorch,"
        " and 1.04 GiB is reserved by PyTorch but unallocated.\n"
    ).messages
    assert "message_gaps.which_process" not in {one.code for one in found.cannot_tell}


def test_where_others_hold_more_of_the_card_than_this_process_that_is_said_first():
    (found,) = read(
        "NPU out of memory. Tried to allocate 22.00 MiB (NPU 0; 60.97 GiB total capacity; 10.24 GiB already allocated;"
        " 10.24 GiB current active; 19.52 MiB free; 10.65 GiB reserved in total by PyTorch)\n"
    ).messages
    assert [one.code for one in found.proves] == ["message_proofs.outside", "message_proofs.free_inside"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "cudaErrorMemoryAllocation\n- Free memory: 4096\n- Requested memory: 8192",
            "driver_sized_free",
        ),
        ("cudaErrorMemoryAllocation\n- Free memory: 8192\n- Requested memory: 4096", "driver_sized"),
        ("Not enough host memory available. Requesting 123.45 GB but only have 45.67 GB free", "budget_sized"),
        (
            "cuMemAllocAsync failed to allocate 8192 bytes: RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of"
            " memory\n Reported by CUDA: Free memory/Total memory: 2048/4096",
            "larger_than_card",
        ),
    ],
)
def test_figures_beside_a_refusal_are_compared(text: str, code: str):
    (found,) = read(f"{text}\n").messages
    assert proven(found) == {code}


def test_what_a_process_holds_beside_its_allocator_is_told_where_it_is_more_than_a_context():
    text = (
        "CUDA out of memory. Tried to allocate 60.00 MiB. GPU 1 has a total capacity of 79.15 GiB of which 7.19 MiB is"
        " free. Including non-PyTorch memory, this process has {} memory in use. Of the allocated memory 72.36 GiB is"
        " allocated by PyTorch, and 71.59 MiB is reserved by PyTorch but unallocated."
    )
    assert "beside_allocator" in proven(read(text.format("79.14 GiB")).messages[0])
    assert "beside_allocator" not in proven(read(text.format("73.30 GiB")).messages[0])


def test_the_kernels_killer_is_told_of_in_its_own_line_and_with_no_limit_that_it_does_not_name():
    first, second = read(
        "[1.1] Memory cgroup out of memory: Killed process 30 (python) total-vm:14020104kB, anon-rss:5508868kB,"
        " file-rss:0kB, shmem-rss:0kB\n[2.2] node invoked oom-killer: gfp_mask=0x100cca\n"
    ).messages
    assert (first.line, second.line) == (1, 2)
    assert proven(first) == {"killed_in_group"}
    assert proven(second) == {"killed_by_kernel"}


def test_of_several_algorithms_that_cudnn_tried_one_that_got_no_memory_counts():
    engine = (
        "Profiling failure on CUDNN engine {}: UNKNOWN: CUDNN_STATUS_{}\n"
        "in cuda_dnn.cc(4023): 'cudnnConvolutionForward(...)'\n"
    )
    (both,) = read(engine.format(1, "EXECUTION_FAILED") + engine.format(0, "ALLOC_FAILED")).messages
    assert proven(both) == {"library_alloc"}
    (one,) = read(engine.format(1, "EXECUTION_FAILED")).messages
    assert proven(one) == {"library"}


def test_what_has_spilled_to_the_host_is_not_said_to_be_too_much_for_the_card():
    (found,) = read(
        "CUDA out of memory. Tried to allocate 16.00 GiB (GPU 0; 23.99 GiB total capacity; 10.22 GiB already allocated;"
        " 0 bytes free; {} reserved in total by PyTorch) try setting max_split_size_mb".format("26.22 GiB")
    ).messages
    assert proven(found) == {"card_full", "spilled"}
    assert {one.code for one in found.advice} == {"message_advice.undecided"}


def test_a_buffer_larger_than_a_device_makes_any_is_refused_by_no_shortage():
    (found,) = read(
        "ggml_vulkan: Device memory allocation of size 4199040000 failed.\n"
        "ggml_vulkan: Requested buffer size exceeds device buffer size limit: ErrorOutOfDeviceMemory\n"
        "ggml_gallocr_reserve_n: failed to allocate Vulkan0 buffer of size 4571325856\n"
    ).messages
    assert proven(found) == {"one_buffer_of_device"}
    assert found.reading.device == 0
    assert found.cannot_tell == ()
