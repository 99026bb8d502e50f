"""What only a recording can tell, where a caching allocator gives its figures."""

from __future__ import annotations

from oomscope.messages.figures import Figure
from oomscope.messages.proofs.judgement import Judgement
from oomscope.messages.proofs.sizes import Sizes, is_notable
from oomscope.messages.records import OomMessage
from oomscope.model.note import Note, note

OF_OTHERS = ("message_proofs.others", "message_proofs.unnamed_others", "message_proofs.outside")


def _why_refused(sizes: Sizes) -> Note:
    """What may have refused where the card shows room enough."""
    cap, total = sizes.allowed, sizes.total
    if cap is None or sizes.reserved is not None or (total is not None and not total.exceeds(cap)):
        return note("message_gaps.why_refused")
    return note("message_gaps.near_cap", allowed=cap.value)


def _gap_outside(judgement: Judgement, sizes: Sizes, codes: set[str]) -> None:
    """Whose the rest of the card is, where that is not told and may have mattered."""
    rest = sizes.outside
    if rest is None or sizes.others is not None or codes & {*OF_OTHERS, "message_proofs.neither"}:
        return
    if sizes.reserved is not None and is_notable(rest, sizes):
        judgement.cannot_tell.append(note("message_gaps.whose_rest", rest=rest.value))
    elif _would_do(rest, sizes):
        judgement.cannot_tell.append(note("message_gaps.whose_little", rest=rest.value))


def _would_do(rest: Figure, sizes: Sizes) -> bool:
    """Whether `rest`, which may be this process's own, and what is free would have served the request."""
    request, free = sizes.requested, sizes.free
    if request is None or free is None or sizes.process is not None or sizes.others is not None:
        return False
    return sizes.reserved is not None and rest.low > 0 and not free.covers(request) and (free + rest).covers(request)


def leave_open(judgement: Judgement, sizes: Sizes, message: OomMessage) -> None:
    """Add to `judgement` what the figures of `message` leave open."""
    _gaps_in_figures(judgement, sizes, message)
    old = message.reading.values.get("era") == "old" or "old_python" in message.around
    if old and message.kind in ("torch-cuda", "torch-hip"):
        judgement.cannot_tell.append(note("message_gaps.too_old"))
    if message.kind == "torch-async" and "comfyui" not in message.around:
        judgement.cannot_tell.append(note("message_gaps.comfyui"))
    if message.kind in ("torch-xpu", "torch-npu"):
        judgement.cannot_tell.append(note("message_gaps.other_snapshots"))


def _gaps_in_figures(judgement: Judgement, sizes: Sizes, message: OomMessage) -> None:
    codes = {one.code for one in judgement.proves}
    if "message_proofs.overflow" in codes:
        judgement.cannot_tell.append(note("message_gaps.which_operation"))
        return
    if sizes.requested is None:
        judgement.cannot_tell.append(note("message_gaps.no_size"))
    if codes & {"message_proofs.larger_than_card", "message_proofs.larger_than_cap"}:
        judgement.cannot_tell.append(note("message_gaps.which_operation"))
        return
    if sizes.allocated is not None and sizes.allocated.value:
        judgement.cannot_tell.append(note("message_gaps.who_holds", allocated=sizes.allocated.value))
    elif sizes.allocated is None:
        judgement.cannot_tell.append(note("message_gaps.who_holds_unknown"))
    if "message_proofs.free_inside" in codes:
        judgement.cannot_tell.append(note("message_gaps.what_separates"))
    if codes & {"message_proofs.outside", "message_proofs.unnamed_others", "message_proofs.neither"}:
        of_pool = message.kind == "torch-async"
        judgement.cannot_tell.append(
            note("message_gaps.whose_outside_pool" if of_pool else "message_gaps.whose_outside")
        )
    _gap_outside(judgement, sizes, codes)
    if "message_proofs.room_on_card" in codes:
        judgement.cannot_tell.append(_why_refused(sizes))
    unnamed = sizes.others is None and sizes.process is None and not message.reading.values.get("tells_own")
    if message.reading.values.get("named") and unnamed:
        judgement.cannot_tell.append(note("message_gaps.which_process"))
