"""What the lines around a message change in what is said of it; segments are not what a tensor asked for."""

from __future__ import annotations

import pytest

from oomscope.messages import OomMessage
from oomscope.wording import say
from oomscope.wording.messages import headline, next_commands_after
from tests.messages.comparing import read
from tests.messages.test_proofs import message, proven, worth

NOT_ENOUGH = (
    "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: not enough memory: you tried to"
)
CUBLAS = "failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED\n"
ASYNC = (
    "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\n"
    "Currently allocated     : 6.05 GiB\nRequested               : 128.00 MiB\n"
    "Device limit            : 8.00 GiB\nFree (according to CUDA): 0 bytes\n"
    "PyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB\n"
)


def only(text: str) -> OomMessage:
    (found,) = read(text).messages
    return found


def gaps(found: OomMessage) -> list[str]:
    return [note.code.partition(".")[2] for note in found.cannot_tell]


@pytest.mark.parametrize(
    ("values", "codes", "advice"),
    [
        ({"requested": "20.00 MiB", "unallocated": "6.91 MiB"}, {"card_full", "large_segment"}, ["undecided"]),
        ({"requested": "22.00 MiB", "unallocated": "6.91 MiB"}, {"nowhere"}, ["cannot_help"]),
        ({"requested": "20.00 MiB", "unallocated": "0.50 MiB"}, {"nowhere"}, ["cannot_help"]),
        ({"requested": "20.00 MiB", "unallocated": "40.00 MiB"}, {"free_inside"}, ["fits_here"]),
        ({"requested": "2.00 MiB", "unallocated": "0.50 MiB"}, {"card_full", "small_segment"}, ["undecided"]),
    ],
)
def test_a_small_tensor_may_have_fitted_where_the_segment_for_it_did_not(
    values: dict[str, str], codes: set[str], advice: list[str]
):
    found = message(total="21.10 GiB", free="0.25 MiB", allocated="21.00 GiB", more="", **values)
    assert proven(found) == codes
    assert worth(found) == advice


def test_fragmentation_is_not_advised_where_the_card_has_room():
    found = message("0.50 GiB", unallocated="2.00 GiB", free="4.00 GiB", allocated="12.00 GiB")
    assert proven(found) >= {"free_inside", "room_on_card"}
    assert worth(found) == ["beside_the_point"]


def test_who_says_this_process_needs_no_number_of_it():
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 24.00"
        " GiB of which 0 bytes is free. Process 17 has 17179869184.00 GiB memory in use. Including non-PyTorch memory,"
        " this process has 17179869184.00 GiB memory in use. Of the allocated memory 20.00 GiB is allocated by PyTorch,"
        " and 10.00 MiB is reserved by PyTorch but unallocated.\n"
    )
    assert "which_process" not in gaps(only(text))
    assert "which_process" in gaps(only(text.replace("this process", "Process 18")))


def test_a_message_that_ends_in_the_midst_of_a_clause_keeps_its_figure():
    whole = message(
        "512.00 MiB", free="0.25 GiB", more="Including non-PyTorch memory, this process has 23.00 GiB memory in use. "
    )
    for end, name in (("GiB i", "free"), ("GiB memory", "process_in_use"), ("GiB is reserve", "reserved")):
        text = whole.text[: whole.text.rindex(end) + len(end)]
        assert only(text + "\n").figure(name) == whole.figure(name)


def test_windows_has_a_page_file_and_no_free():
    for text in (f"{NOT_ENOUGH} allocate 4294967296 bytes.\n", f'  File "C:\\\\x\\\\train.py", line 3, in f\n{LINUX}'):
        found = only(text)
        assert found.kind == "host-ram"
        assert next_commands_after(found) == []
        assert gaps(found) == ["host_windows"]
    assert next_commands_after(only(LINUX)) == ["free -h"]


LINUX = (
    "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"
    " to allocate 4294967296 bytes. Error code 12 (Cannot allocate memory)\n"
)


def test_torch_records_no_library_of_tensorflow():
    (command,) = next_commands_after(only(f"E tensorflow/stream_executor/cuda/cuda_blas.cc:510] {CUBLAS}"))
    assert command.startswith("nvidia-smi")
    assert next_commands_after(only(CUBLAS)) == ["oomscope run --on exception your_script.py"]


def test_comfyui_switches_to_the_native_allocator_by_an_option_of_its_own():
    above = '  File "/opt/ComfyUI/main.py", line 9, in <module>\n'
    (command,) = next_commands_after(only(above + ASYNC))
    assert command.startswith("oomscope run ")
    assert command.endswith(" --disable-cuda-malloc")
    (command,) = next_commands_after(only(ASYNC))
    assert command.startswith("PYTORCH_CUDA_ALLOC_CONF=backend:native oomscope run ")


def test_docker_tells_when_the_limit_of_the_container_was_not_reached():
    state = '"Status": "exited",\n"OOMKilled": {},\n"ExitCode": 137,\n'
    assert gaps(only(state.format("false"))) == ["signal_not_container"]


@pytest.mark.parametrize(
    "text",
    [
        "InternalError: Failed copying input tensor from /job:localhost/replica:0/task:0/device:CPU:0 to"
        " /job:localhost/replica:0/task:0/device:GPU:1 in order to run _EagerConst: Dst tensor is not initialized.\n",
        "Executor failed to create kernel. Internal: Dst tensor is not initialized.\n\t [[Node: V/initial_value ="
        ' Const[dtype=DT_FLOAT, _device="/job:localhost/replica:0/task:0/gpu:1"]()]]\n',
    ],
)
def test_a_copy_that_tensorflow_could_not_make_is_told_with_its_device_and_its_doubt(text: str):
    found = only(text)
    assert (found.kind, found.reading.device, proven(found)) == ("tensorflow", 1, {"tensorflow_copy"})
    assert "does not say so" in say(found.proves[0])


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (
            "FATAL ERROR: Ineffective mark-compacts near heap limit Allocation failed - JavaScript heap out of memory",
            "Node.js",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", "Java"),
        ("[ONNXRuntimeError] : 6 : Failed to allocate memory for requested buffer of size 150994944", "ONNX Runtime"),
        ("Out of memory allocating 1,024 bytes (allocated so far: 128 bytes, limit set to: 1,280 bytes).", "CuPy"),
        ("Exceeded the memory: my allocator is out of memory", "Other"),
    ],
)
def test_the_program_that_speaks_is_named(text: str, program: str):
    assert headline(only(f"{text}\n")).startswith(f"{program}: ")


def test_what_has_spilled_to_host_memory_is_not_bounded_by_the_card():
    old = (
        "CUDA out of memory. Tried to allocate {} (GPU 0; 8.00 GiB total capacity; {} already allocated; 0 bytes free;"
        " {} reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb\n"
    )
    spilled = only(old.format("15.82 GiB", "21.37 GiB", "34.79 GiB"))
    assert proven(spilled) == {"larger_than_card_alone", "spilled"}
    assert worth(spilled) == ["undecided"]
    spilled = only(old.format("1.00 GiB", "21.37 GiB", "21.79 GiB"))
    assert proven(spilled) == {"card_full", "spilled"}
    held = only(old.format("15.82 GiB", "5.37 GiB", "6.79 GiB"))
    assert proven(held) == {"larger_than_card"}
    assert worth(held) == ["cannot_help"]


def test_no_setting_of_large_blocks_helps_a_tensor_of_the_small_pool():
    assert worth(message("2.00 MiB", free="0.25 MiB", unallocated="80.00 MiB")) == ["undecided"]


def test_on_a_small_card_less_is_worth_a_word():
    old = (
        "CUDA out of memory. Tried to allocate 72.00 MiB (GPU 0; 1.00 GiB total capacity; 350.00 MiB already allocated;"
        " 10.00 MiB free; 400.00 MiB reserved in total by PyTorch)\n"
    )
    assert "outside" in proven(only(old))
    assert "outside" not in proven(only(old.replace("400.00", "800.00").replace("350.00", "780.00")))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("memory allocation of 18446744073709551615 bytes failed", "overflow"),
        ("<jemalloc>: Unsupported system page size\nmemory allocation of 24 bytes failed", "jemalloc_pages"),
        (
            "ggml_new_tensor_impl: not enough space in the context's memory pool (needed 819402384, available"
            " 805306368)",
            "pool_of_context",
        ),
        (
            "W bfc_allocator.cc:213] Ran out of memory trying to allocate 1.24GiB. The caller indicates that this is"
            " not a failure",
            "went_on",
        ),
    ],
)
def test_where_no_memory_was_short_nobody_is_asked_who_holds_it(text: str, code: str):
    found = only(f"{text}\n")
    assert proven(found) == {code}
    assert found.figure("requested") is not None
    assert gaps(found) == []
    assert code == "went_on" or next_commands_after(found) == []


def test_what_a_pool_would_have_to_hold_is_not_what_was_requested():
    text = "ggml_new_tensor_impl: not enough space in the context's memory pool (needed 819402384, available 805306368)"
    assert headline(only(f"{text}\n")).endswith("781.44 MiB needed")


def test_the_size_that_tensorrt_prints_is_read_where_the_line_is_cut_off():
    text = "[W] Requested amount of GPU memory (8589934592 by"
    assert only(f"{text}tes) could not be allocated.\n").figure("requested") == only(text).figure("requested")


MPS = (
    "MPS backend out of memory (MPS allocated: 45.18 GiB, other allocations: 719.81 MiB, max allowed: 45.90 GiB)."
    " Tried to allocate 23.44 MiB on private pool."
)


def test_what_a_logger_reports_of_the_exception_above_is_no_second_failure():
    log = f"RuntimeError: {MPS}\n2026-02-07 19:33:57.629 | INFO     | app.train:start:642 - Training failed: {MPS}\n"
    assert only(log).times == 2
    assert len(read(log.replace("45.18", "44.99", 1)).messages) == 2


def test_what_two_loggers_report_line_by_line_is_one_failure():
    failure = message("1.50 GiB").text
    log = f"[loop]error:{failure}\nERROR in app: {{'code': 1, 'msg': '{failure}'}}\nERROR:app:{{'msg': '{failure}'}}\n"
    assert only(log).times == 3
    apart = "step 7\n" * 5
    whole = f"error: {failure}. If reserved but unallocated memory is large try setting expandable_segments:True.\n"
    assert len(read(f"{whole}{apart}{whole}").messages) == 2


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's"
            " workers are out of shared memory.",
            "bus_error",
        ),
        ("RuntimeError: unable to write to file </torch_7_1>", "dev_shm_likely"),
        ("RuntimeError: unable to write to file </torch_7_1>: No space left on device (28)", "dev_shm"),
    ],
)
def test_a_bus_error_is_no_proof_that_shared_memory_was_full(text: str, code: str):
    assert proven(only(f"{text}\n")) == {code}


def test_page_locked_memory_may_be_refused_for_another_reason():
    line = "ggml_cuda_host_malloc: failed to allocate 2560.00 MiB of pinned memory: {}\n"
    other = only(line.format("system has unsupported display driver / cuda driver combination"))
    assert (proven(other), gaps(other), next_commands_after(other)) == ({"pinned_other_reason"}, [], [])
    assert proven(only(line.format("out of memory"))) == {"pinned_goes_on"}


def test_a_call_for_memory_of_the_card_leaves_no_doubt_whose_it_was():
    card = "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY\n"
    assert gaps(only(card)) == ["library_alloc"]
    assert gaps(only(card.replace("cuMemAlloc", "cuLaunchKernel"))) == ["driver"]
    assert "driver" not in gaps(only("Native API failed: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)\n"))


def test_windows_ignores_expandable_segments():
    above = '  File "E:\\\\ui\\\\train.py", line 3, in f\n'
    found = message("1.50 GiB", unallocated="2.00 GiB", before=above)
    assert worth(found) == ["not_on_windows"]
    assert worth(message("1.50 GiB", unallocated="2.00 GiB")) == ["fits_here"]


def test_more_in_use_than_the_limit_of_mps_is_told_without_a_request():
    cut = "MPS backend out of memory (MPS allocated: 2.33 GiB, other allocations: 5.12 MiB, max allowed: {} GiB)\n"
    assert proven(only(cut.format("1.95"))) == {"mps_over"}
    assert proven(only(cut.format("3.95"))) == set()


def test_a_warm_up_that_failed_may_have_been_refused_by_the_card():
    found = only("RuntimeError: Not enough memory to handle 4096 prefill tokens. You need to decrease the size\n")
    assert (found.kind, proven(found), gaps(found)) == ("serving-budget", {"warm_up"}, ["driver_or_engine"])


def test_a_pool_of_the_driver_may_keep_what_is_neither_allocated_nor_free():
    assert "whose_outside_pool" in gaps(only(ASYNC))


def test_what_a_driver_does_not_tell_a_container_of_any_process_is_not_taken_for_nothing():
    """Eight ranks on one card, each of which "has 0 bytes"."""
    none = (
        "Process 12 has 0 bytes memory in use. Including non-PyTorch memory, this process has 0 bytes memory in use. "
    )
    held = message("4.00 GiB", allocated="2.00 GiB", unallocated="0 bytes", more=none)
    assert "outside" in proven(held)
    assert held.figure("others_in_use").value == 0
    assert "outside" not in proven(message("4.00 GiB", allocated="22.00 GiB", unallocated="0 bytes", more=none))


def test_little_outside_the_allocator_is_asked_about_where_it_would_have_served_the_request():
    held = message("512.00 MiB", free="20.00 MiB", allocated="23.25 GiB", unallocated="0.10 GiB")
    assert "outside" not in proven(held)
    assert "whose_little" in gaps(held)
    assert "whose the other 0.63 GiB of the card is" in " ".join(map(say, held.cannot_tell))
    assert "whose_little" not in gaps(
        message("2.00 GiB", free="20.00 MiB", allocated="23.25 GiB", unallocated="0.10 GiB")
    )


def test_a_difference_of_rounded_sizes_is_not_told_more_exactly_than_it_is_known():
    held = message("512.00 MiB", free="20.00 MiB", allocated="22.00 GiB", unallocated="0.10 GiB")
    assert "1.88 GiB of the card is held outside" in " ".join(map(say, held.proves))


def test_a_python_that_no_torch_with_history_runs_on_is_told():
    path = '  File "/opt/conda/lib/python{}/site-packages/torch/nn/modules/linear.py", line 9, in forward\n'
    assert "too_old" in gaps(message("1.00 GiB", before=path.format("3.7")))
    assert "too_old" not in gaps(message("1.00 GiB", before=path.format("3.10")))
    assert "too_old" not in gaps(message("1.00 GiB", before=path.format("3.8")))


def test_who_killed_a_process_is_told_by_the_kernels_log_below():
    log = (
        "Killed\n$ dmesg\n[   13.95] mem invoked oom-killer: gfp_mask=0x14200ca(GFP), order=0, oom_score_adj=0\n"
        "[   13.95] Call Trace:\n[   13.95]  dump_header+0x97/0x224\n{}[   13.95]  out_of_memory+0xf5/0x290\n"
    )
    assert proven(only(log.format("[   13.95]  mem_cgroup_out_of_memory+0x36/0x50\n"))) == {"killed_at_limit"}
    assert proven(only(log.format(""))) == {"killed_by_kernel"}


def test_whom_the_kernel_chose_is_named_and_its_log_not_asked_for_again():
    constraint = "[46.4] oom-kill:constraint=CONSTRAINT_{},nodemask=(null),cpuset=a,mems_allowed=0,global_oom"
    chosen = only(constraint.format("NONE") + ",task_memcg=/system.slice/x.scope,task=java,pid=7134,uid=1000\n")
    assert say(chosen.proves[0]).startswith("The kernel killed a process (java, pid 7134) because the machine's")
    assert next_commands_after(chosen) == []


def test_tensorflow_has_an_allocator_of_the_machines_memory():
    found = only("OOM when allocating tensor with shape[25,4] and type float on /job:localhost/device:CPU:0 by cpu\n")
    assert (proven(found), gaps(found), next_commands_after(found)) == ({"tensorflow_host"}, ["host"], ["free -h"])


@pytest.mark.parametrize(
    ("text", "requested"),
    [
        ("syncedmem.cpp:45] Check failed: (cudaMalloc(&gpu_ptr_, size_)) == cudaSuccess (2 vs. 0)", None),
        ("PxgCudaDeviceMemoryAllocator fail to allocate memory 100663296 bytes!! Result = 2", 100663296),
    ],
)
def test_the_drivers_code_for_memory_tells_without_words(text: str, requested: int | None):
    found = only(f"{text}\n")
    figure = found.figure("requested")
    assert (found.kind, figure and figure.value) == ("cuda-driver", requested)
    others = read(text.replace("= 2", "= 700").replace("(2 vs", "(77 vs")).messages
    assert found.reading.wording == "driver.refused"
    assert all(one.reading.wording != "driver.refused" for one in others)
