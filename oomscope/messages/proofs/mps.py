"""What a message of Metal (MPS) proves: the limit is a share of the machine's memory, set by PyTorch itself."""

from __future__ import annotations

from oomscope.messages.figures import Figure
from oomscope.messages.proofs.judgement import Judgement
from oomscope.messages.records import OomMessage
from oomscope.model.note import Note, note


def judge(message: OomMessage) -> Judgement:
    """What the figures of `message` prove."""
    judgement = Judgement()
    request, used, cap = (message.figure(name) for name in ("requested", "process_in_use", "allowed"))
    other: Figure | None = message.reading.values.get("outside_pool")
    if message.reading.wording == "mps.buffer" and request is not None:
        judgement.proves.append(note("message_proofs.one_buffer", requested=request.value))
    if request is not None and cap is not None:
        if request.exceeds(cap):
            judgement.proves.append(note("message_proofs.larger_than_cap", requested=request.value, allowed=cap.value))
        elif used is not None:
            judgement.proves.append(_against_cap(used + request, cap))
    elif used is not None and cap is not None and used.exceeds(cap):
        judgement.proves.append(note("message_proofs.mps_over", used=used.value, allowed=cap.value))
    allocated = message.figure("allocated")
    if other is not None and allocated is not None and other.exceeds(allocated):
        judgement.proves.append(note("message_proofs.mps_outside_pool", other=other.value, allocated=allocated.value))
    if "high_watermark" in (message.reading.values.get("advice") or ()):
        judgement.advice.append(note("message_advice.high_watermark"))
    judgement.cannot_tell.append(note("message_gaps.mps"))
    return judgement


def _against_cap(needed: Figure, cap: Figure) -> Note:
    values = {"needed": needed.value, "allowed": cap.value}
    if needed.exceeds(cap):
        return note("message_proofs.mps_cap", **values)
    if cap.exceeds(needed):
        return note("message_proofs.mps_below", **values)
    return note("message_proofs.mps_near", **values)
