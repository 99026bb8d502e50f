"""What the message of a caching allocator proves.

By the time it is thrown, the allocator has handed back every segment that is wholly free, and tried again: what it says
is free inside PyTorch lies beside something that is in use, or belongs to another stream or pool.
"""

from __future__ import annotations

from oomscope.messages.figures import Figure, exact
from oomscope.messages.proofs.judgement import Judgement
from oomscope.messages.proofs.left_open import OF_OTHERS, leave_open
from oomscope.messages.proofs.sizes import NOTABLE, Sizes, contradicts_itself, is_notable, sizes_of
from oomscope.messages.records import OomMessage
from oomscope.model.note import note
from oomscope.units import MIB

_SMALL_POOL = (2 * MIB,)
"""Of a pool of its own, which no setting of large blocks touches."""
_OF_ONE_TENSOR = {2 * MIB: "message_proofs.small_segment", 20 * MIB: "message_proofs.large_segment"}


def judge(message: OomMessage) -> Judgement:
    """What the figures of `message` prove."""
    sizes = sizes_of(message)
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
    elif "absurd" in message.reading.values:
        judgement.proves.append(note("message_proofs.overflow"))
    total, free = message.figure("total"), message.figure("free")
    if contradicts_itself(message) and total is not None and free is not None:
        judgement.proves.insert(0, note("message_proofs.contradicts", free=free.value, total=total.value))
    _biggest_first(judgement, sizes)
    _idle_in_pools(judgement, sizes)
    _spilled(judgement, sizes)
    _beside_allocator(judgement, sizes)
    _doing(judgement, message)
    leave_open(judgement, sizes, message)
    return judgement


def _too_large(judgement: Judgement, sizes: Sizes, request: Figure) -> bool:
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


def _too_much_live(judgement: Judgement, sizes: Sizes, request: Figure, during: str | None) -> bool:
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


def _cap(judgement: Judgement, sizes: Sizes, request: Figure) -> bool:
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


def _free_inside(judgement: Judgement, sizes: Sizes, request: Figure, *, settled: bool) -> None:
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


def _segment(judgement: Judgement, sizes: Sizes, request: Figure) -> None:
    """Whether a tensor so small that its segment was printed may have fitted into what was free inside PyTorch."""
    inside, tensor = sizes.inside, sizes.tensor
    if inside is None or tensor is None or tensor is request:
        return
    if request.exceeds(inside) and not tensor.exceeds(inside):
        judgement.proves.append(note(_OF_ONE_TENSOR[request.value]))


def _others(judgement: Judgement, sizes: Sizes, request: Figure) -> None:
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
    if rest is None or not is_notable(rest, sizes) or not (free + rest).covers(request):
        return
    if sizes.process is None and sizes.reserved is None:
        judgement.proves.append(note("message_proofs.card_full", free=free.value, requested=request.value))
        judgement.proves.append(note("message_proofs.neither", rest=rest.value))
        return
    if sizes.process is not None:
        judgement.proves.append(note("message_proofs.unnamed_others", rest=rest.value, requested=request.value))
    else:
        judgement.proves.append(note("message_proofs.outside", rest=rest.value, requested=request.value))


def _biggest_first(judgement: Judgement, sizes: Sizes) -> None:
    """Where others hold more of the card than this allocator, that is the first to say."""
    mine = sizes.reserved or sizes.allocated
    for proof in judgement.proves:
        held = proof.values.get("others", proof.values.get("rest")) if proof.code in OF_OTHERS else None
        if mine is not None and isinstance(held, int) and held > mine.high:
            judgement.proves.remove(proof)
            judgement.proves.insert(0, proof)
            return


def _unexplained(judgement: Judgement, sizes: Sizes, request: Figure) -> None:
    """Whether the card shows room enough for what it refused."""
    if sizes.free is None or not sizes.free.covers(request):
        return
    rest, mine = sizes.outside, sizes.reserved or sizes.allocated
    if rest is not None and mine is not None and sizes.total is not None and rest.exceeds(mine + mine):
        judgement.proves.append(note("message_proofs.mostly_outside", rest=rest.value, total=sizes.total.value))
    judgement.proves.append(note("message_proofs.room_on_card", free=sizes.free.value, requested=request.value))


def _card_full(judgement: Judgement, sizes: Sizes, request: Figure) -> None:
    """Where nothing more telling is proven: that the card itself had too little."""
    if judgement.proves or sizes.free is None or not request.exceeds(sizes.free):
        return
    values = {"free": sizes.free.value, "requested": request.value}
    if sizes.process is not None and sizes.total is not None:
        of_card = {"process": sizes.process.value, "total": sizes.total.value}
        judgement.proves.append(note("message_proofs.card_full_by_this", **values, **of_card))
    else:
        judgement.proves.append(note("message_proofs.card_full", **values))


def _idle_in_pools(judgement: Judgement, sizes: Sizes) -> None:
    """What the message calls allocated in private pools is what lies free there: it adds up ``pool.blocks``."""
    if sizes.pools is not None and sizes.pools.value:
        judgement.proves.append(note("message_proofs.free_in_pools", pools=sizes.pools.value))


def _spilled(judgement: Judgement, sizes: Sizes) -> None:
    if sizes.spilled is not None and sizes.total is not None:
        judgement.proves.append(note("message_proofs.spilled", held=sizes.spilled.value, total=sizes.total.value))


def _beside_allocator(judgement: Judgement, sizes: Sizes) -> None:
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


def _advice(judgement: Judgement, sizes: Sizes, request: Figure, message: OomMessage) -> None:
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
        elif sizes.spilled is None and free is not None and tensor.exceeds(inside + free + (sizes.pools or exact(0))):
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
