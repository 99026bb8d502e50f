"""What the message of a caching allocator proves.

By the time it is thrown, the allocator has handed back every segment that is wholly free, and tried again: what it says
is free inside PyTorch lies beside something that is in use, or belongs to another stream or pool.
"""

from __future__ import annotations

from oomscope.frozen import frozen
from oomscope.messages.figures import Figure, exact
from oomscope.messages.proofs.judgement import Judgement
from oomscope.messages.records import OomMessage
from oomscope.model.note import Note, note
from oomscope.units import MIB

NOTABLE = 1 << 30
"""A CUDA context and its libraries seldom hold more: from here on, what is outside PyTorch is worth a word."""
OF_A_SMALL_CARD = 4
"""So is a fourth of the card."""

_ASKED_FOR = {2 * MIB: (1, MIB), 20 * MIB: (MIB + 1, 20 * MIB)}
"""By what is printed, what the tensor itself may have: messages print the segment that is asked of the driver.

That is 2 MiB for a tensor of up to 1 MiB, 20 MiB for one of up to 10 MiB, and a multiple of 2 MiB for larger ones:
``get_allocation_size`` in c10/cuda/CUDACachingAllocator.cpp.
"""
_SMALL_POOL = (2 * MIB,)
"""Of a pool of its own, which no setting of large blocks touches."""
_OF_ONE_TENSOR = {2 * MIB: "message_proofs.small_segment", 20 * MIB: "message_proofs.large_segment"}
_WITH_SEGMENTS = ("torch-cuda", "torch-hip", "torch-xpu", "torch-npu")


@frozen
class _Sizes:
    """The figures of a message, None where they are not printed."""

    requested: Figure | None
    total: Figure | None
    free: Figure | None
    allocated: Figure | None
    reserved: Figure | None
    process: Figure | None
    others: Figure | None
    allowed: Figure | None
    pools: Figure | None
    inside: Figure | None
    tensor: Figure | None

    @property
    def limit(self) -> Figure | None:
        """What this process may hold at most: the cap, or else the card."""
        return self.allowed or self.total

    @property
    def outside(self) -> Figure | None:
        """What of the card this process does not hold, or as far as is printed its allocator, and which is not free."""
        mine = self.process or self.reserved or self.allocated
        return self.total - self.free - mine if self.total and self.free and mine else None

    @property
    def spilled(self) -> Figure | None:
        """What the allocator holds, where it is more than the card has."""
        held = self.reserved if self.reserved is not None else self.allocated
        return held if held is not None and self.total is not None and held.exceeds(self.total) else None


def judge(message: OomMessage) -> Judgement:
    """What the figures of `message` prove."""
    sizes = _sizes(message)
    judgement = Judgement()
    request = sizes.requested
    if message.reading.wording == "torch.block_limit" and request is not None and sizes.allowed is not None:
        values = {"requested": request.value, "allowed": sizes.allowed.value}
        judgement.proves.append(note("message_proofs.one_block", **values))
    elif request is not None:
        settled = _too_large(judgement, sizes, request) or _too_much_live(judgement, sizes, request, message.during)
        capped = _cap(judgement, sizes, request)
        _free_inside(judgement, sizes, request, settled=settled)
        if not settled and not capped:
            _others(judgement, sizes, request)
            _unexplained(judgement, sizes, request)
        _card_full(judgement, sizes, request)
        _advice(judgement, sizes, request, message)
        _segment(judgement, sizes, request)
    _biggest_first(judgement, sizes)
    _idle_in_pools(judgement, sizes)
    _spilled(judgement, sizes)
    _beside_allocator(judgement, sizes)
    _doing(judgement, message)
    _gaps(judgement, sizes, message)
    return judgement


def _sizes(message: OomMessage) -> _Sizes:
    allocated, reserved = message.figure("allocated"), message.figure("reserved")
    inside = message.reading.values.get("unallocated")
    if inside is None and allocated is not None and reserved is not None:
        inside = reserved - allocated
    process, others = message.figure("process_in_use"), message.figure("others_in_use")
    if process is not None and reserved is not None and reserved.exceeds(process):
        process = None  # in some containers the driver does not tell a process of itself: "this process has 0 bytes"
        others = others if others and others.value else None
    requested = message.figure("requested")
    return _Sizes(
        requested, message.figure("total"), message.figure("free"), allocated, reserved,
        process, others, message.figure("allowed"),
        message.figure("private_pools"), inside, _of_tensor(message, requested),
    )  # fmt: skip


def _of_tensor(message: OomMessage, request: Figure | None) -> Figure | None:
    """What the tensor may have for which `request` was printed: itself, but for sizes of small segments."""
    if request is None or message.kind not in _WITH_SEGMENTS or message.reading.wording != "torch.tried":
        return request
    low, high = _ASKED_FOR.get(request.value, (0, 0))
    return Figure(request.point, low, high) if high else request


def _too_large(judgement: Judgement, sizes: _Sizes, request: Figure) -> bool:
    """Whether the request alone is larger than the card or the cap."""
    if sizes.total is not None and request.exceeds(sizes.total):
        # What spills to the host's memory is not bounded by the card's.
        code = "message_proofs.larger_than_card" if sizes.spilled is None else "message_proofs.larger_than_card_alone"
        judgement.proves.append(note(code, requested=request.value, total=sizes.total.value))
        return sizes.spilled is None
    if sizes.allowed is not None and request.exceeds(sizes.allowed):
        judgement.proves.append(
            note("message_proofs.larger_than_cap", requested=request.value, allowed=sizes.allowed.value)
        )
        return True
    return False


def _too_much_live(judgement: Judgement, sizes: _Sizes, request: Figure, during: str | None) -> bool:
    """Whether what is allocated and the request are more than the card: however tidy it were, it does not fit."""
    limit, live, tensor = sizes.limit, sizes.allocated, sizes.tensor
    if limit is None or live is None or tensor is None:
        return False
    if sizes.pools is not None:  # the printed figure has idle blocks of the pools in it
        live = live - sizes.pools
    needed = live + tensor
    # What has spilled to the host's memory was not held to the card's.
    if not needed.exceeds(limit) or live.exceeds(limit) or (sizes.allowed is None and sizes.spilled is not None):
        return False
    values = {"allocated": live.value, "requested": request.value, "needed": needed.value, "limit": limit.value}
    if during == "weights":
        judgement.proves.append(note("message_proofs.weights", **values))
    elif sizes.allowed is not None:
        judgement.proves.append(note("message_proofs.live_and_request_capped", **values))
    else:
        judgement.proves.append(note("message_proofs.live_and_request", **values))
    return True


def _cap(judgement: Judgement, sizes: _Sizes, request: Figure) -> bool:
    """Whether a cap refused the request."""
    cap, reserved = sizes.allowed, sizes.reserved or sizes.allocated
    if cap is None or reserved is None or request.exceeds(cap):
        return False
    needed = reserved + request
    if cap.exceeds(needed):
        return False
    values = {"reserved": reserved.value, "requested": request.value, "allowed": cap.value}
    if not needed.exceeds(cap):
        judgement.proves.append(note("message_proofs.cap_near", needed=needed.value, allowed=cap.value))
        return True
    if sizes.free is not None and sizes.free.covers(request):
        judgement.proves.append(note("message_proofs.cap_not_card", **values, free=sizes.free.value))
    else:
        judgement.proves.append(note("message_proofs.cap", **values))
    return True


def _free_inside(judgement: Judgement, sizes: _Sizes, request: Figure, *, settled: bool) -> None:
    """Whether the bytes were there inside PyTorch, in pieces that could not serve."""
    inside, free, tensor = sizes.inside, sizes.free, sizes.tensor
    if inside is None or tensor is None:
        return
    if inside.covers(request):
        judgement.proves.append(note("message_proofs.free_inside", inside=inside.value, requested=request.value))
    elif settled or free is None:
        return
    elif sizes.spilled is None and tensor.exceeds(inside + free + (sizes.pools or exact(0))):
        judgement.proves.append(
            note("message_proofs.nowhere", inside=inside.value, free=free.value, requested=request.value)
        )
    elif tensor.exceeds(inside) and request.exceeds(free) and (inside + free).covers(request):
        judgement.proves.append(
            note("message_proofs.only_together", inside=inside.value, free=free.value, requested=request.value)
        )


def _segment(judgement: Judgement, sizes: _Sizes, request: Figure) -> None:
    """Whether a tensor so small that its segment was printed may have fitted into what was free inside PyTorch."""
    inside, tensor = sizes.inside, sizes.tensor
    if inside is None or tensor is None or tensor is request:
        return
    if request.exceeds(inside) and not tensor.exceeds(inside):
        judgement.proves.append(note(_OF_ONE_TENSOR[request.value]))


def _others(judgement: Judgement, sizes: _Sizes, request: Figure) -> None:
    """Whether without what is held outside this process or allocator the request would have fitted."""
    free = sizes.free
    if free is None or free.covers(request):
        return
    if sizes.others is not None:
        if (free + sizes.others).covers(request):
            values = {"others": sizes.others.value, "free": free.value, "requested": request.value}
            judgement.proves.append(note("message_proofs.others", **values))
        return
    rest = sizes.outside
    if rest is None or not _is_notable(rest, sizes) or not (free + rest).covers(request):
        return
    if sizes.process is None and sizes.reserved is None:
        judgement.proves.append(note("message_proofs.card_full", free=free.value, requested=request.value))
        judgement.proves.append(note("message_proofs.neither", rest=rest.value))
        return
    if sizes.process is not None:
        judgement.proves.append(note("message_proofs.unnamed_others", rest=rest.value, requested=request.value))
    else:
        judgement.proves.append(note("message_proofs.outside", rest=rest.value, requested=request.value))


def _is_notable(rest: Figure, sizes: _Sizes) -> bool:
    """Whether `rest` is more than what a context and libraries of a process seldom exceed."""
    return sizes.total is not None and rest.low >= min(NOTABLE, sizes.total.value // OF_A_SMALL_CARD)


def _biggest_first(judgement: Judgement, sizes: _Sizes) -> None:
    """Where others hold more of the card than this allocator, that is the first to say."""
    mine = sizes.reserved or sizes.allocated
    for proof in judgement.proves:
        held = proof.values.get("others", proof.values.get("rest")) if proof.code in _OF_OTHERS else None
        if mine is not None and isinstance(held, int) and held > mine.high:
            judgement.proves.remove(proof)
            judgement.proves.insert(0, proof)
            return


_OF_OTHERS = ("message_proofs.others", "message_proofs.unnamed_others", "message_proofs.outside")


def _unexplained(judgement: Judgement, sizes: _Sizes, request: Figure) -> None:
    """Whether the card shows room enough for what it refused."""
    if sizes.free is None or not sizes.free.covers(request):
        return
    rest, mine = sizes.outside, sizes.reserved or sizes.allocated
    if rest is not None and mine is not None and sizes.total is not None and rest.exceeds(mine + mine):
        judgement.proves.append(note("message_proofs.mostly_outside", rest=rest.value, total=sizes.total.value))
    judgement.proves.append(note("message_proofs.room_on_card", free=sizes.free.value, requested=request.value))


def _card_full(judgement: Judgement, sizes: _Sizes, request: Figure) -> None:
    """Where nothing more telling is proven: that the card itself had too little."""
    if judgement.proves or sizes.free is None or not request.exceeds(sizes.free):
        return
    values = {"free": sizes.free.value, "requested": request.value}
    if sizes.process is not None and sizes.total is not None:
        of_card = {"process": sizes.process.value, "total": sizes.total.value}
        judgement.proves.append(note("message_proofs.card_full_by_this", **values, **of_card))
    else:
        judgement.proves.append(note("message_proofs.card_full", **values))


def _idle_in_pools(judgement: Judgement, sizes: _Sizes) -> None:
    """What the message calls allocated in private pools is what lies free there: it adds up ``pool.blocks``."""
    if sizes.pools is not None and sizes.pools.value:
        judgement.proves.append(note("message_proofs.free_in_pools", pools=sizes.pools.value))


def _spilled(judgement: Judgement, sizes: _Sizes) -> None:
    if sizes.spilled is not None and sizes.total is not None:
        judgement.proves.append(note("message_proofs.spilled", held=sizes.spilled.value, total=sizes.total.value))


def _beside_allocator(judgement: Judgement, sizes: _Sizes) -> None:
    """Whether this process holds more outside its allocator than a CUDA context and its libraries seldom take."""
    if sizes.process is None or sizes.reserved is None:
        return
    beside = sizes.process - sizes.reserved
    if beside.low >= NOTABLE:
        judgement.proves.append(note("message_proofs.beside_allocator", beside=beside.value))


def _doing(judgement: Judgement, message: OomMessage) -> None:
    if message.during == "weights" and not any(one.code == "message_proofs.weights" for one in judgement.proves):
        judgement.proves.append(note("message_proofs.during_weights"))
    elif message.during == "backward":
        judgement.proves.append(note("message_proofs.during_backward"))
    elif message.during == "optimizer":
        judgement.proves.append(note("message_proofs.during_optimizer"))


def _advice(judgement: Judgement, sizes: _Sizes, request: Figure, message: OomMessage) -> None:
    """What the message's own advice is worth."""
    given = message.reading.values.get("advice") or ()
    inside, free, tensor = sizes.inside, sizes.free, sizes.tensor
    for slug in given:
        if inside is None or tensor is None:
            continue
        values = {"advice": slug, "inside": inside.value, "requested": request.value}
        codes = {one.code for one in judgement.proves}
        if codes & _BEYOND_ADVICE and not inside.value:
            judgement.advice.append(note("message_advice.none_inside", advice=slug))
        elif codes & _BEYOND_ADVICE:
            judgement.advice.append(note("message_advice.cannot_help", **values))
        elif slug == "expandable_segments:True" and "windows" in message.around:
            judgement.advice.append(note("message_advice.not_on_windows", advice=slug))
        elif slug == "empty_cache":
            judgement.advice.append(note("message_advice.empty_cache", **values))
        elif sizes.spilled is None and free is not None and tensor.exceeds(inside + free):
            judgement.advice.append(note("message_advice.cannot_help", **values))
        elif free is not None and free.covers(request):
            judgement.advice.append(note("message_advice.beside_the_point", **values))
        elif inside.covers(request) and request.value in _SMALL_POOL:
            judgement.advice.append(note("message_advice.undecided", **values))
        elif inside.covers(request) and sizes.spilled is None:
            on_rocm = message.kind == "torch-hip" and slug == "expandable_segments:True"
            code = "message_advice.fits_here_on_rocm" if on_rocm else "message_advice.fits_here"
            judgement.advice.append(note(code, **values))
        elif "message_proofs.only_together" in codes:
            judgement.advice.append(note("message_advice.might_help", **values))
        elif sizes.spilled is None and free is not None and (inside + free).covers(request):
            judgement.advice.append(note("message_advice.speaks_for", **values))
        else:
            judgement.advice.append(note("message_advice.undecided", **values))


_BEYOND_ADVICE = {
    "message_proofs.larger_than_card",
    "message_proofs.larger_than_cap",
    "message_proofs.live_and_request",
    "message_proofs.live_and_request_capped",
    "message_proofs.weights",
    "message_proofs.nowhere",
}


def _why_refused(sizes: _Sizes) -> Note:
    """What may have refused where the card shows room enough."""
    cap, total = sizes.allowed, sizes.total
    if cap is None or sizes.reserved is not None or (total is not None and not total.exceeds(cap)):
        return note("message_gaps.why_refused")
    return note("message_gaps.near_cap", allowed=cap.value)


def _gap_outside(judgement: Judgement, sizes: _Sizes, codes: set[str]) -> None:
    """Whose the rest of the card is, where that is not told and may have mattered."""
    rest = sizes.outside
    if rest is None or sizes.others is not None or codes & {*_OF_OTHERS, "message_proofs.neither"}:
        return
    if sizes.reserved is not None and _is_notable(rest, sizes):
        judgement.cannot_tell.append(note("message_gaps.whose_rest", rest=rest.value))
    elif _would_do(rest, sizes):
        judgement.cannot_tell.append(note("message_gaps.whose_little", rest=rest.value))


def _would_do(rest: Figure, sizes: _Sizes) -> bool:
    """Whether `rest`, which may be this process's own, and what is free would have served the request."""
    request, free = sizes.requested, sizes.free
    if request is None or free is None or sizes.process is not None or sizes.others is not None:
        return False
    return sizes.reserved is not None and rest.low > 0 and not free.covers(request) and (free + rest).covers(request)


def _gaps(judgement: Judgement, sizes: _Sizes, message: OomMessage) -> None:
    """What only a recording can tell."""
    _gaps_in_figures(judgement, sizes, message)
    old = message.reading.values.get("era") == "old" or "old_python" in message.around
    if old and message.kind in ("torch-cuda", "torch-hip"):
        judgement.cannot_tell.append(note("message_gaps.too_old"))
    if message.kind in ("torch-xpu", "torch-npu"):
        judgement.cannot_tell.append(note("message_gaps.other_snapshots"))


def _gaps_in_figures(judgement: Judgement, sizes: _Sizes, message: OomMessage) -> None:
    codes = {one.code for one in judgement.proves}
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
