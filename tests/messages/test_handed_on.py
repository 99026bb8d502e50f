"""What only repeats, serves or passes on is no failure of its own; what is shown is no finer than it is known."""

from __future__ import annotations

import pytest

from oomscope.rendering.explain import to_text
from oomscope.units import GIB, MIB, Rounded, format_size
from oomscope.wording import say
from oomscope.wording.messages import next_commands_after
from tests.messages.comparing import read
from tests.messages.test_proofs import message, proven, worth
from tests.messages.test_surroundings import gaps, only

NPU = (
    "NPU out of memory. Tried to allocate 9.05 GiB (NPU 0; 60.95 GiB total capacity; 42.32 GiB already allocated;"
    " 42.32 GiB current active; 2.10 GiB free; 52.58 GiB reserved in total by PyTorch)"
)


def test_what_a_server_reports_of_its_engine_is_no_second_failure():
    log = (
        f"[Stage-0] ERROR 03-23 04:09:00 [stage.py:138] RuntimeError: Diffusion generation failed: {NPU}\n"
        "(APIServer pid=107) ERROR 03-23 04:09:00 [async.py:520] Stage 0 error on request x:"
        f" Diffusion generation failed: {NPU}\n"
    )
    assert len(read(log).messages) == 1


def test_ranks_that_fail_alike_are_several_failures():
    text = (
        "CUDA out of memory. Tried to allocate 9.05 GiB. GPU 0 has a total capacity of 60.95 GiB of which 2.10 GiB is"
        " free. Of the allocated memory 42.32 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but"
        " unallocated."
    )
    log = "".join(f"[rank{rank}]: torch.OutOfMemoryError: {text}\n" for rank in (0, 8))
    assert len(read(log).messages) == 2


def test_what_was_served_is_told_only_where_nothing_failed():
    served = "tcmalloc: large alloc 5175050240 bytes == 0x43ca2000 @ 0x7f4c\n"
    refused = "W bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to allocate 384.00MiB\n"
    assert proven(only(served)) == {"only_a_warning"}
    assert only(served + refused).kind == "tensorflow"


def test_devices_of_messages_that_say_the_same_are_all_named():
    old = "RuntimeError: CUDA out of memory. Tried to allocate {} GiB (GPU {}; 39.59 GiB total capacity; {} GiB {})\n"
    log = old.format("27.45", 1, "18.75", "already allocated; 19.56 GiB free")
    log += old.format("2.31", 0, "37.57", "already allocated; 997.19 MiB free")
    assert "devices in order: 1, 0," in " ".join(to_text(read(log)).split())


@pytest.mark.parametrize(
    ("count", "off_by", "shown"),
    [
        (round(0.67 * GIB), 16 * MIB, "0.67 GiB"),
        (round(5.3 * GIB), 54 * MIB, "5.3 GiB"),
        (120 * MIB, MIB // 2, "120 MiB"),
        (round(23.65 * GIB), 5368710, "23.65 GiB"),
        (0, 11 * MIB, "0.00 GiB"),
        (512, 0, "512 bytes"),
    ],
)
def test_a_size_is_shown_no_finer_than_it_is_known(count: int, off_by: int, shown: str):
    assert format_size(Rounded(count, off_by)) == shown


def test_who_holds_most_of_the_card_is_told_even_where_the_card_shows_room():
    held = message("2.00 MiB", total="39.59 GiB", free="3.19 MiB", allocated="98.78 MiB", unallocated="17.22 MiB")
    assert "39.47 GiB of the card's 39.59 GiB is held outside this allocator." in map(say, held.proves)
    assert "mostly_outside" not in proven(message("2.00 MiB", free="3.19 MiB"))


def test_the_rest_of_the_card_is_asked_about_where_it_alone_would_not_have_served():
    held = message("4.00 GiB", total="16.00 GiB", free="0 bytes", allocated="10.29 GiB", unallocated="3.03 GiB")
    assert {"whose_rest"} == {gap for gap in gaps(held) if gap.startswith("whose")}
    assert worth(held) == ["cannot_help"]


def test_php_has_a_limit_of_its_own():
    found = only("PHP Fatal error: Allowed memory size of 536870912 bytes exhausted (tried to allocate 72 bytes)\n")
    assert (found.kind, found.figure("requested").value, found.figure("allowed").value) == ("other", 72, 536870912)
    assert "This is PHP's own message, not PyTorch's." in map(say, found.proves)


def test_xla_wants_a_programs_temporaries_in_one_piece():
    found = only(
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 13771167248"
        " bytes.\nBufferAssignment OOM Debugging.\nBufferAssignment stats:\n  parameter allocation:  444.12MiB\n"
        "  preallocated temp allocation:   12.83GiB\n"
    )
    assert (proven(found), gaps(found)) == ({"jax_temporaries"}, ["which_buffers"])


def test_what_a_logger_prints_of_tensorrts_request_is_read_where_it_is_cut_off():
    found = only(
        "[defaultAllocator.cpp::allocateAsync::44] Error Code 1: Cuda Runtime (out of memory)\n"
        "Requested amount of GPU memory (22649242112 bytes) could not be alloca\n"
    )
    assert (found.figure("requested").value, gaps(found)) == (22649242112, ["driver_sized"])


def test_a_call_that_nvidias_samples_name_is_the_drivers():
    found = only(
        'ERROR: CUDA RT call "cudaMalloc(&a, nx * ny)" in line 378 of file jacobi.cpp failed with out of memory (2).\n'
    )
    assert (proven(found), gaps(found)) == ({"driver"}, ["library_alloc"])


def test_within_rounding_both_kinds_of_fragmentation_speak_for_the_advice():
    held = message("4.64 GiB", total="14.76 GiB", free="4.24 GiB", allocated="4.83 GiB", unallocated="4.64 GiB")
    assert worth(held) == ["speaks_for"]


def test_expandable_segments_are_not_in_every_release_for_rocm():
    text = (
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 11.74 GiB. GPU 7 has a total capacity of 252 GiB"
        " of which 6.94 GiB is free. Of the allocated memory 229.04 GiB is allocated by PyTorch, and 12.46 GiB is"
        " reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting"
        " PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n"
    )
    assert worth(only(text)) == ["fits_here_on_rocm"]


def test_who_holds_the_card_is_asked_next_where_others_hold_more_than_this_process():
    little = message("148.00 MiB", total="31.60 GiB", free="87.44 MiB", allocated="594.01 MiB", unallocated="5.99 MiB")
    assert next_commands_after(little)[0].startswith("nvidia-smi")
    much = message("1.50 GiB", free="1.00 GiB", allocated="20.00 GiB", unallocated="0.10 GiB")
    assert "outside" in proven(much)
    assert next_commands_after(much)[0].startswith("oomscope run")


def test_an_engine_that_reckons_with_the_machines_memory_is_believed_within_rounding():
    found = only("model requires more system memory (11.3 GiB) than is available (11.2 GiB)\n")
    assert "needs 11.3 GiB of the machine's memory, and 11.2 GiB is available" in say(found.proves[0])
    assert (gaps(found), next_commands_after(found)) == (["host"], ["free -h"])


def test_whose_memory_directml_means_is_told_and_no_more():
    found = only(
        "RuntimeError: Could not allocate tensor with 9850880 bytes. There is not enough GPU video memory available!\n"
    )
    assert proven(found) == {"video_memory"}


def test_a_library_of_a_release_without_history_cannot_be_recorded_there():
    found = only(
        "RuntimeError: cublas runtime error : resource allocation failed at /pytorch/aten/src/THC/THCGeneral.cpp:250\n"
    )
    assert "too_old" in gaps(found)


def test_more_than_an_exabyte_is_no_shortage():
    found = only("OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.\n")
    assert (proven(found), gaps(found)) == ({"overflow"}, ["which_operation"])


def test_a_step_of_which_processes_were_killed_may_have_gone_on():
    found = only(
        "slurmstepd: error: Detected 39 oom-kill event(s) in StepId=36616044.batch. Some of your processes may have"
        " been killed by the cgroup out-of-memory handler.\n"
    )
    assert proven(found) == {"killed_of_step"}
    assert next_commands_after(found) == ["sacct -j 36616044 -o JobID,State,ReqMem,MaxRSS"]


def test_r_has_a_limit_of_its_own():
    found = only(
        "Error : cannot allocate vector of size 3.8 Gb\nIn addition: Warning messages:\n"
        "  Reached total allocation of 3969Mb: see help(memory.size)\n"
    )
    assert (proven(found), gaps(found), next_commands_after(found)) == ({"limit_of_r"}, [], [])
    plain = only("Error: cannot allocate vector of size 3.8 Gb\n")
    assert (proven(plain), gaps(plain)) == ({"host_sized"}, ["host"])


def test_onnx_runtime_is_not_recorded():
    found = only(
        "onnxruntime::CudaCall CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; expr=cublasCreate(&handle)\n"
    )
    assert next_commands_after(found)[0].startswith("nvidia-smi")


@pytest.mark.parametrize(("operation", "size"), [("Mul", 131072 * 2048 * 4), ("Equal", None)])
def test_the_type_of_a_tensor_is_that_of_its_operation_where_the_line_names_none(operation: str, size: int | None):
    found = only(
        "ResourceExhaustedError (see above for traceback): OOM when allocating tensor with shape[131072,2048]\n"
        f'\t [[Node: training/Adam/mul_3 = {operation}[T=DT_FLOAT, _device="/job:localhost/task:0/gpu:0"](x, y)]]\n'
    )
    figure = found.figure("requested")
    assert (figure and figure.value) == size


def test_a_bar_before_a_quotation_is_no_part_of_it():
    found = only(
        "▎ ValueError: To serve at least one request with the model's max seq len (196608),\n"
        "▎ 23.25 GiB KV cache is needed, which is larger than the available KV cache memory (22.5 GiB).\n"
    )
    assert (found.kind, found.figure("free").value) == ("serving-budget", 24159191040)


def test_a_guardrail_that_stopped_a_load_is_an_estimate():
    found = only(
        "Model loading was stopped due to insufficient system resources. Under the current settings, this model"
        " requires approximately 273.25 GB of memory, and continuing to load it would likely overload your system.\n"
    )
    assert (found.kind, proven(found)) == ("serving-budget", {"reckoned"})


def test_what_lies_free_in_private_pools_is_not_forgotten_when_the_advice_is_judged():
    pools = "Of the allocated memory 28.14 GiB is allocated by PyTorch, with 7.43 GiB allocated in private pools (e.g.,"
    found = only(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.37 GiB. GPU 0 has a total capacity of 31.3 GiB"
        f" of which 1.87 GiB is free. Including non-PyTorch memory, this process has 29.06 GiB memory in use. {pools}"
        " CUDA Graphs), and 243.11 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is"
        " large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n"
    )
    assert worth(found) == ["undecided"]


def test_a_call_that_only_allocates_on_the_card_leaves_no_doubt_whose_memory_it_was():
    for text in (
        "[E] [TRT] ../rtSafe/safeRuntime.cpp (25) - Cuda Error in allocate: 2 (out of memory)",
        "syncedmem.cpp:56] Check failed: error == cudaSuccess (2 vs. 0)  out of memory",
        "CUDA error at: /x/rmm/mr/device/cuda_memory_resource.hpp:60: cudaErrorMemoryAllocation out of memory",
    ):
        assert gaps(only(f"{text}\n")) == ["library_alloc"]


def test_a_message_that_contradicts_itself_proves_nothing_by_those_figures():
    found = message("16.00 GiB", total="15.49 GiB", free="84.98 GiB", allocated="1.67 GiB", unallocated="8.08 GiB")
    assert proven(found) == {"contradicts"}
    assert worth(found) == ["undecided"]


def test_a_request_stands_in_its_own_line_and_not_in_that_of_the_table_above():
    found = only(
        "I bfc_allocator.cc:680] Stats: \nLimit:                     8716288\nInUse:                     8017152\n"
        "W op_kernel.cc:1295] OP_REQUIRES failed at constant_op.cc:75 : Resource exhausted: OOM when allocating tensor"
        " of shape [1,399,532,3] and type float\n"
    )
    assert (found.line, found.figure("allowed").value) == (4, 8716288)


@pytest.mark.parametrize(
    "text",
    [
        "CUDA failure 2: out of memory ; GPU=0 ; file=cuda_allocator.cc ; line=47 ; expr=cudaMalloc((void**)&p, size);",
        " Try to set subdivisions=64 in your cfg-file.\nCUDA Error: out of memory",
    ],
)
def test_what_stands_around_may_tell_that_the_card_was_asked(text: str):
    assert gaps(only(f"{text}\n")) == ["library_alloc"]


def test_a_worker_that_says_why_tells_it_of_the_bus_error_before():
    found = only(
        "RuntimeError: DataLoader worker (pid 729) is killed by signal: Bus error. It is possible that dataloader's"
        " workers are out of shared memory.\n"
        "RuntimeError: unable to write to file </torch_739_144252761_4>: No space left on device (28)\n"
    )
    assert proven(found) == {"dev_shm"}


def test_a_group_that_reached_its_limit_is_told_as_such():
    found = only(
        "kernel: Task in /kubepods.slice/docker-b27.scope killed as a result of limit of /kubepods.slice\n"
        "kernel: memory: usage 1048576kB, limit 1048576kB, failcnt 189\n"
    )
    assert (proven(found), gaps(found)) == ({"killed_at_limit"}, ["what_filled_group"])
    assert found.figure("allowed").value == GIB


def test_vulkan_names_its_code_by_number():
    found = only("Failure in vkAllocateMemory at 191 src/mvulkan.cpp  ErrCode=-2\n")
    assert (found.kind, gaps(found)) == ("cuda-driver", ["library_alloc"])


def test_an_error_that_a_reply_names_twice_is_one():
    error = (
        "CUDA out of memory. Tried to allocate 58.00 MiB. GPU 0 has a total capacty of 23.54 GiB of which 17.75 MiB is"
        " free. Process 333813 has 23.52 GiB memory in use. Of the allocated memory 23.01 GiB is allocated by PyTorch,"
        " and 50.19 MiB is reserved by PyTorch but unallocated."
    )
    log = f'{{\n  "error": "OutOfMemoryError: {error}",\n  "output": {{\n    "errors": "{error}"\n  }}\n}}\n'
    assert only(log).times == 2
