"""What can be said where no allocator gives its figures: driver, libraries, host memory, JAX, TensorFlow, signals."""

from __future__ import annotations

import re

from oomscope.messages.families import LAST_RESORT, device, other, pinned
from oomscope.messages.figures import Figure
from oomscope.messages.proofs.judgement import Judgement
from oomscope.messages.records import OomMessage
from oomscope.model.note import Note, note


def judge(message: OomMessage) -> Judgement:
    """What `message` proves, by its wording or else by its kind."""
    judgement = Judgement()
    slug = message.reading.wording
    for proof in _proofs(message):
        judgement.proves.append(proof)
    said = _said(message).lower()
    for words, code in _ADVICE.items():
        if words in said:
            judgement.advice.append(note(code))
    gap = _GAPS[slug] if slug in _GAPS else _GAPS.get(message.kind)
    if slug in LAST_RESORT and message.kind in _UNKNOWN:
        gap = "message_gaps.who_refused"
    for proof in judgement.proves:
        gap = _GAP_BEHIND.get(proof.code, gap)
    gap = _where_it_ran(message, gap)
    if gap == "message_gaps.driver" and _is_of_the_card(message):
        gap = "message_gaps.library_alloc"
    if gap is not None:
        judgement.cannot_tell.append(note(gap))
    of_torch = message.kind in ("cublas", "cudnn") or message.reading.wording == "driver.torch"
    if of_torch and ("old_python" in message.around or "/THC/" in message.text):
        judgement.cannot_tell.append(note("message_gaps.too_old"))
    return judgement


def _is_of_the_card(message: OomMessage) -> bool:
    """Whether a call or a program is named that asks for memory of the card only."""
    by_expression = "expr=cudaMalloc(" in _said(message)  # as ONNX Runtime writes it behind its message
    return by_expression or "darknet" in message.around or _OF_THE_CARD.search(message.text) is not None


def _said(message: OomMessage) -> str:
    """The message and what stands right behind it, without blanks."""
    return "".join(f"{message.text}{message.reading.values.get('after', '')}".split())


def _where_it_ran(message: OomMessage, gap: str | None) -> str | None:
    """`gap` in the words of the system that the lines around the message show."""
    if gap == "message_gaps.host" and "windows" in message.around:
        return "message_gaps.host_windows"
    if gap == "message_gaps.signal" and "not_container" in message.around:
        return "message_gaps.signal_not_container"
    return gap


def _proofs(message: OomMessage) -> list[Note]:
    """What its figures prove, else what its wording says."""
    if message.reading.wording in LAST_RESORT:
        return [note(_UNKNOWN.get(message.kind, "message_proofs.unknown_words"))]
    reading = message.reading
    if message.kind == "pinned-host" and _OTHER_REASON.search(_said(message)):
        return [note("message_proofs.pinned_other_reason")]
    if message.kind == "cuda-driver" and "gpuvideomemory" in _said(message).lower():
        return [note("message_proofs.video_memory")]
    if reading.wording == pinned.GOES_ON:
        return [note("message_proofs.pinned_goes_on")]
    if reading.wording == "host.shared" and "full" not in reading.values and not _FULL.search(_said(message)):
        by_signal = "buserror" in _said(message).lower()
        return [note("message_proofs.bus_error" if by_signal else "message_proofs.dev_shm_likely")]
    if "jemalloc_pages" in message.around and message.kind == "host-ram":
        return [note("message_proofs.jemalloc_pages")]
    found = _sized(message)
    if found is not None:
        return [found]
    if message.kind == "tensorflow" and "notafailure" in str(reading.values.get("after")):
        return [note("message_proofs.went_on")]
    if message.kind == "tensorflow" and _BY_CPU.search(_said(message)):
        return [note("message_proofs.tensorflow_host")]
    if message.kind == "jax" and "preallocatedtempallocation:" in str(reading.values.get("after")):
        return [note("message_proofs.jax_temporaries")]
    if message.kind in ("cublas", "cudnn") and "alloc" in str(reading.values.get("status", "")).lower():
        return [note("message_proofs.library_alloc")]
    program = other.program_of("".join(message.text.split()))
    if reading.wording == "other.program" and program is not None:
        return [note("message_proofs.named_program", program=program)]
    general = _PROOFS.get(reading.wording) or _PROOFS.get(message.kind)
    return [note(general)] if general else []


def _sized(message: OomMessage) -> Note | None:
    """What the figures prove; None where those that it takes are not printed."""
    wording = message.reading.wording
    request, limit, total, free = (message.figure(name) for name in ("requested", "allowed", "total", "free"))
    used = message.figure("process_in_use")
    if message.kind == "oom-killer":
        return _killed(message, used, limit)
    if request is not None and request.low >= NO_MACHINE:
        return note("message_proofs.overflow")
    if request is None:
        if message.kind != "cuda-driver" or free is None:
            return None
        return note("message_proofs.driver_free", free=free.value)
    if message.kind in _ON_CARD and wording != "jax.space" and total is not None and request.exceeds(total):
        return note("message_proofs.larger_than_card", requested=request.value, total=total.value)
    if wording == device.ONE_PIECE:
        return note("message_proofs.one_buffer_of_device", requested=request.value)
    if message.kind == "cuda-driver" and free is not None and request.exceeds(free):
        return note("message_proofs.driver_sized_free", requested=request.value, free=free.value)
    if message.kind == "shared-memory" and limit is not None and request.exceeds(limit):
        return note("message_proofs.on_chip", requested=request.value, allowed=limit.value)
    if wording == "jax.space" and total is not None and request.exceeds(total):
        return note("message_proofs.program_too_large", requested=request.value, total=total.value)
    if wording == "jax.reserve":
        return _reserved(request, free)
    if wording == "other.one_piece" and limit is not None and request.exceeds(limit):
        return note("message_proofs.one_block", requested=request.value, allowed=limit.value)
    if message.kind == "host-ram" and limit is not None:
        return note("message_proofs.limit_of_r", requested=request.value, allowed=limit.value)
    if message.kind in ("other", "tensorflow"):
        return _by_itself(message, request, limit, free)
    code = _SIZED.get(message.kind) if wording not in ("host.by_driver", "host.locked", "host.said") else None
    return note(code, requested=request.value) if code else None


def _reserved(request: Figure, free: Figure | None) -> Note:
    """What a TPU says of a piece that it could not reserve; an excerpt may lack what was free."""
    if free is None:
        return note("message_proofs.jax_reserve_only", requested=request.value)
    return note("message_proofs.jax_reserve", requested=request.value, free=free.value)


def _by_itself(message: OomMessage, request: Figure, limit: Figure | None, free: Figure | None) -> Note | None:
    """What a program's own figures prove: that its limit was reached, or that less was free."""
    taken = message.figure("allocated")
    if message.reading.wording in ("other.warning", other.SERVED):
        return None
    if limit is not None and taken is not None and (taken + request).exceeds(limit):
        values = {"allocated": taken.value, "requested": request.value, "allowed": limit.value}
        return note("message_proofs.own_limit", **values)
    if message.reading.wording == other.POOL_OF_CONTEXT and free is not None:
        return note("message_proofs.pool_of_context", needed=request.value, pool=free.value)
    if free is not None and request.exceeds(free):
        return note("message_proofs.less_free", requested=request.value, free=free.value)
    return None


def _killed(message: OomMessage, used: Figure | None, limit: Figure | None) -> Note | None:
    values = message.reading.values
    by_kernel = message.reading.wording == "killed.kernel"
    in_group = by_kernel and "group" in values
    if used is None and by_kernel and (in_group or "whole" in values):
        code = "message_proofs.killed_at_limit" if in_group else "message_proofs.killed_of_machine"
        return note(code, name=values.get("name"), pid=values.get("pid"))
    if used is None:
        return None
    if message.reading.wording == "killed.kernel":
        code = "message_proofs.killed_in_group" if in_group else "message_proofs.killed_sized"
        return note(code, used=used.value)
    if limit is not None and used.exceeds(limit):
        return note("message_proofs.killed_over", used=used.value, allowed=limit.value)
    return None


_DRIVER_SIZED = ("message_proofs.driver_sized", "message_proofs.driver_sized_free")
_ON_CARD = ("cuda-driver", "jax", "tensorflow")
_SIZED = {
    "pinned-host": "message_proofs.pinned_sized",
    "host-ram": "message_proofs.host_sized",
    "nccl": "message_proofs.nccl_sized",
    "cuda-driver": "message_proofs.driver_sized",
}
_PROOFS = {
    "driver.counting": "message_proofs.counting",
    "other.pool": "message_proofs.own_pool",
    "device.other_code": "message_proofs.other_code",
    "cuda-driver": "message_proofs.driver",
    "cudnn.no_algorithm": "message_proofs.no_algorithm",
    "shared-memory": "message_proofs.on_chip_unsized",
    "cublas": "message_proofs.library",
    "cudnn": "message_proofs.library",
    "nccl.unhandled": "message_proofs.nccl_unhandled",
    "nccl.other_reason": "message_proofs.nccl_other_reason",
    "nccl": "message_proofs.nccl",
    "host.shared": "message_proofs.dev_shm",
    "host.plain": "message_proofs.host_plain",
    "host.by_driver": "message_proofs.host_by_driver",
    "host.errno": "message_proofs.host_errno",
    "host.locked": "message_proofs.host_locked",
    "host.said": "message_proofs.host_said",
    "host-ram": "message_proofs.host",
    "pinned-host": "message_proofs.pinned",
    "tensorflow.driver": "message_proofs.tensorflow_driver",
    "tensorflow.copy": "message_proofs.tensorflow_copy",
    "tensorflow": "message_proofs.tensorflow",
    "jax": "message_proofs.jax",
    "killed.kernel": "message_proofs.killed_by_kernel",
    "killed.slurm": "message_proofs.killed_by_slurm",
    "killed.yarn": "message_proofs.killed_by_yarn",
    "killed.step": "message_proofs.killed_of_step",
    "killed.container": "message_proofs.killed_in_container",
    "killed.evicted": "message_proofs.evicted",
    "killed.notebook": "message_proofs.notebook",
    "killed.ray": "message_proofs.killed_by_ray",
    "killed.worker": "message_proofs.killed_as_worker",
    "killed.by_name": "message_proofs.killed_by_name",
    "killed.said": "message_proofs.killed_said",
    "oom-killer": "message_proofs.signal",
    "other.guess": "message_proofs.only_guesses",
    "killed.early": "message_proofs.killed_early",
    "other.warning": "message_proofs.only_a_warning",
    other.SERVED: "message_proofs.only_a_warning",
    "other.launch": "message_proofs.registers",
    "other.planned": "message_proofs.planned",
    "other": "message_proofs.other_program",
}
_GAP_BEHIND: dict[str, str | None] = {
    "message_proofs.library_alloc": "message_gaps.library_alloc",
    "message_proofs.driver_sized": "message_gaps.driver_sized",
    "message_proofs.driver_sized_free": "message_gaps.driver_sized",
    "message_proofs.jax_temporaries": "message_gaps.which_buffers",
    "message_proofs.tensorflow_host": "message_gaps.host",
    "message_proofs.killed_in_group": "message_gaps.what_filled_group",
    "message_proofs.killed_at_limit": "message_gaps.what_filled_group",
    "message_proofs.limit_of_r": None,
    "message_proofs.overflow": None,
    "message_proofs.jemalloc_pages": None,
    "message_proofs.went_on": None,
    "message_proofs.pinned_other_reason": None,
    "message_proofs.pinned_goes_on": None,
}
"""What stays open behind a proof, where it is not what stays open behind its wording. None: nothing does."""
_OTHER_REASON = re.compile(r"unsupporteddisplaydriver|driverversionisinsufficient|initializationerror|noCUDA-capable")
"""That a driver names beside page-locked memory, and which is no shortage."""
_BY_CPU = re.compile(r"device:CPU:\d+|byallocator(?:cpu|mklcpu)|CPU_0|EigenAllocatorforCPU", re.IGNORECASE)
"""TensorFlow's allocator of the machine's memory."""
_FULL = re.compile(r"Nospaceleft|Cannotallocatememory|isfull|Resourcetemporarily|Full", re.IGNORECASE)
"""With what shared memory is said to be full; a bus error has other causes too."""
_OF_THE_CARD = re.compile(
    r"\b(?:cuMemAlloc|cudaMalloc|hipMalloc)(?!Host|Managed)|OUT_OF_DEVICE_MEMORY|OutOfDeviceMemory|kIOGPU|\[METAL\]"
    r"|Cuda Error in allocate|cuda_memory_resource|vkAllocateMemory|CL_MEM_OBJECT|syncedmem\.cpp"
    r"|CudaDeviceMemoryAllocator"
)
"""The call or the code that only memory of a device has."""
NO_MACHINE = 1 << 50
"""Bytes that none has, a PiB: a number that wrapped around, or of a wrong shape."""
_UNKNOWN = {
    "cuda-driver": "message_proofs.unknown_words_card",
    "host-ram": "message_proofs.unknown_words_host",
}
"""Whose memory it was is told, though not in words that a family knows."""
_ADVICE = {
    "cuda_launch_blocking": "message_advice.blocking",
    "reducingblocksizes": "message_advice.smaller_blocks",
    "javascriptheapoutofmemory": "message_advice.heap",
    "javaheapspace": "message_advice.java_heap",
    "reduceblocksizeornum_stages": "message_advice.smaller_blocks",
    "raiseyoursharedmemorylimit": "message_advice.raise_shm",
}
_GAPS: dict[str, str | None] = {
    device.ONE_PIECE: None,
    "driver.counting": "message_gaps.set_up",
    "device.other_code": None,
    "cuda-driver": "message_gaps.driver",
    "cublas": "message_gaps.library",
    "cudnn": "message_gaps.library",
    "nccl.other_reason": None,
    "nccl": "message_gaps.who_on_card",
    "host.shared": None,
    "host-ram": "message_gaps.host",
    "pinned-host": "message_gaps.pinned",
    "jax.space": "message_gaps.which_buffers",
    "jax": "message_gaps.who_holds_unknown",
    "tensorflow": "message_gaps.who_holds_unknown",
    "killed.signal": "message_gaps.signal",
    "killed.said": "message_gaps.signal",
    "killed.notebook": None,
    "oom-killer": "message_gaps.what_filled_host",
    "other.unknown": "message_gaps.unknown_words",
}
