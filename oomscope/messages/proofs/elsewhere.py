"""What can be said where no allocator gives its figures: driver, libraries, host memory, JAX, TensorFlow, signals."""

from __future__ import annotations

from oomscope.messages.proofs.judgement import Judgement
from oomscope.messages.records import OomMessage
from oomscope.model.note import Note, note


def judge(message: OomMessage) -> Judgement:
    """What `message` proves, by its wording or else by its kind."""
    judgement = Judgement()
    slug = message.reading.wording
    for proof in _proofs(message):
        judgement.proves.append(proof)
    said = f"{message.text}{message.reading.values.get('after', '')}".replace(" ", "").lower()
    for words, code in _ADVICE.items():
        if words in said:
            judgement.advice.append(note(code))
    gap = _GAPS.get(slug) or _GAPS.get(message.kind)
    if any(proof.code == "message_proofs.library_alloc" for proof in judgement.proves):
        gap = "message_gaps.library_alloc"
    if any(proof.code == "message_proofs.driver_sized" for proof in judgement.proves):
        gap = "message_gaps.driver_sized"
    if gap is not None:
        judgement.cannot_tell.append(note(gap))
    return judgement


def _proofs(message: OomMessage) -> list[Note]:
    reading = message.reading
    request, limit = message.figure("requested"), message.figure("allowed")
    total, used = message.figure("total"), message.figure("process_in_use")
    found: list[Note] = []
    if message.kind == "shared-memory":
        if request is not None and limit is not None and request.exceeds(limit):
            found.append(note("message_proofs.on_chip", requested=request.value, allowed=limit.value))
        else:
            found.append(note("message_proofs.on_chip_unsized"))
        return found
    if reading.wording == "jax.space" and request is not None and total is not None and request.exceeds(total):
        return [note("message_proofs.program_too_large", requested=request.value, total=total.value)]
    if reading.wording == "jax.reserve" and request is not None:
        free = message.figure("free")
        if free is not None:
            return [note("message_proofs.jax_reserve", requested=request.value, free=free.value)]
    if message.kind == "cuda-driver" and request is not None:
        return [note("message_proofs.driver_sized", requested=request.value)]
    if message.kind in ("pinned-host", "host-ram", "nccl") and request is not None:
        return [note(_SIZED[message.kind], requested=request.value)]
    if message.kind == "oom-killer" and used is not None:
        code = "message_proofs.killed_in_group" if reading.values.get("group") else "message_proofs.killed_sized"
        if reading.wording == "killed.kernel":
            return [note(code, used=used.value)]
        if limit is not None and used.exceeds(limit):
            return [note("message_proofs.killed_over", used=used.value, allowed=limit.value)]
    if message.kind in ("cublas", "cudnn") and "alloc" in str(reading.values.get("status", "")).lower():
        return [note("message_proofs.library_alloc")]
    general = _PROOFS.get(reading.wording) or _PROOFS.get(message.kind)
    return [note(general)] if general else []


_SIZED = {
    "pinned-host": "message_proofs.pinned_sized",
    "host-ram": "message_proofs.host_sized",
    "nccl": "message_proofs.nccl_sized",
}
_PROOFS = {
    "driver.counting": "message_proofs.counting",
    "cuda-driver": "message_proofs.driver",
    "cudnn.no_algorithm": "message_proofs.no_algorithm",
    "cublas": "message_proofs.library",
    "cudnn": "message_proofs.library",
    "nccl.unhandled": "message_proofs.nccl_unhandled",
    "nccl": "message_proofs.nccl",
    "host.shared": "message_proofs.dev_shm",
    "host.plain": "message_proofs.host_plain",
    "host-ram": "message_proofs.host",
    "pinned-host": "message_proofs.pinned",
    "tensorflow": "message_proofs.tensorflow",
    "jax": "message_proofs.jax",
    "killed.kernel": "message_proofs.killed_by_kernel",
    "killed.slurm": "message_proofs.killed_by_slurm",
    "killed.container": "message_proofs.killed_in_container",
    "killed.ray": "message_proofs.killed_by_ray",
    "oom-killer": "message_proofs.signal",
    "other.warning": "message_proofs.only_a_warning",
    "other.launch": "message_proofs.registers",
    "other.unknown": "message_proofs.unknown_words",
    "other": "message_proofs.other_program",
}
_ADVICE = {
    "cuda_launch_blocking": "message_advice.blocking",
    "reducingblocksizes": "message_advice.smaller_blocks",
    "raiseyoursharedmemorylimit": "message_advice.raise_shm",
}
_GAPS = {
    "driver.counting": "message_gaps.set_up",
    "cuda-driver": "message_gaps.driver",
    "cublas": "message_gaps.library",
    "cudnn": "message_gaps.library",
    "nccl": "message_gaps.who_on_card",
    "host-ram": "message_gaps.host",
    "pinned-host": "message_gaps.pinned",
    "jax": "message_gaps.who_holds_unknown",
    "tensorflow": "message_gaps.who_holds_unknown",
    "killed.kernel": "message_gaps.what_filled_host",
    "oom-killer": "message_gaps.signal",
    "other.unknown": "message_gaps.unknown_words",
}
