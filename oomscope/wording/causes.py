"""Why a request failed: the sentences of the headline, cause by cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oomscope.units import format_bytes, format_count, plural
from oomscope.wording.drivers import DRIVER_PHRASES
from oomscope.wording.template import Sentence, holder, place, said_shape

_POOLS = {"graph": "the pool of a CUDA graph", "mempool": "a MemPool"}


_ANOTHER = "another {retained:bytes}[, and {others} more {more:bytes}]."


def _unread(values: Mapping[str, Any]) -> str:
    kept = f"{holder(values['holder'])} keeps alive {format_bytes(values['retained'])}"
    read = ", ".join(values["reads"] or ())
    rest = f"of it only {read} is read again" if read else "no running code reads it again"
    return f"{kept} of the {format_bytes(values['live'])} in use, and {rest}."


def _drivers(values: Mapping[str, Any]) -> str:
    parts = ", ".join(f"{DRIVER_PHRASES.get(slug, slug)} {format_bytes(count)}" for slug, count in values["parts"])
    return f"{format_bytes(values['live'])} are in use ({parts}); {format_bytes(values['size'])} more did not fit."


def _needs(values: Mapping[str, Any]) -> str:
    needs, limit = format_bytes(values["needs"]), format_bytes(values["limit"])
    about = "about " if values["about"] else ""
    if needs == limit:
        rest = f"{format_bytes(values['over'])} more at once than the limit of {about}{limit}"
    else:
        rest = f"at least {needs} at once; the limit is {about}{limit}"
    return f"{_who(values)} needs {rest}{_capped(values)}."


def _nearly(values: Mapping[str, Any]) -> str:
    limit = f"{'about ' if values['about'] else ''}{format_bytes(values['limit'])}"
    return (
        f"{_who(values)} needs {format_bytes(values['needs'])} at once, nearly all of the limit of {limit}"
        f"{_capped(values)}, and no free piece is large enough."
    )


def _who(values: Mapping[str, Any]) -> str:
    who = "The program" if values["completed"] is None else "This pass" if values["completed"] else "The first pass"
    return f"{who} of the loop in {place(values['loop'])}" if values["loop"] else who


def _capped(values: Mapping[str, Any]) -> str:
    return f" (a cap; the card has {format_bytes(values['free'])} free)" if values["free"] else ""


def _outside(values: Mapping[str, Any]) -> str:
    who = ", ".join(f"{name} {format_bytes(count)}" for name, count in values["others"])
    return (
        f"{format_bytes(values['outside'])} of this {format_bytes(values['total'])} card are taken by something else"
        f"{f' ({who})' if who else ''}; PyTorch holds {format_bytes(values['reserved'])}."
    )


def _stream(values: Mapping[str, Any]) -> str:
    stream = values["stream"]
    return "the default stream" if stream == 0 else f"stream 0x{stream & (1 << 64) - 1:x}"


def _fragmented(values: Mapping[str, Any]) -> str:
    usable, size = format_bytes(values["usable"]), format_bytes(values["size"])
    pieces = f"in pieces of at most {format_bytes(values['largest'])}"
    if values["usable"] >= values["size"]:
        return f"Enough memory was free, but fragmented: {usable}, {pieces}; the request was for {size}."
    return (
        f"Enough memory was left, but not in one piece: {usable} was free {pieces}, and {format_bytes(values['room'])} "
        f"was not reserved yet; the request was for {size}."
    )


def _pinned(values: Mapping[str, Any], pieces: str) -> str:
    lie = "lies" if values["blocks"] == 1 else "lie"
    blocks = plural(values["blocks"], "live block")
    return f"{blocks} from {place(values['place'])} {lie} between the pieces{pieces}, so that those cannot be joined."


def _like_last(values: Mapping[str, Any]) -> str:
    did = "it needs what the last one did"
    if values["function"]:
        did = f"this call of {values['function']} needs what the one before it did"
    limit = f"{'about ' if values['about'] else ''}{format_bytes(values['limit'])}{_capped(values)}"
    return f"{_who(values)} needs {format_bytes(values['needs'])} at once if {did}; the limit is {limit}."


def _longer(values: Mapping[str, Any]) -> str:
    fitted = "the one" if values["completed"] == 1 else f"any of the {format_count(values['completed'])}"
    fitted = f"{fitted} recorded before it" if values.get("is_part") else f"{fitted} that fitted"
    if values.get("variable"):
        has = _has_shape(values["variable"], values["shape"])
        return f"{has} in this pass, {values['times']:.3g} × as large as in {fitted}."
    where = f" at {place(values['place'])}" if values["place"] else ""
    return f"This pass asks for {values['ratio']:.3g} × as much memory{where} as {fitted}."


def _larger_input(values: Mapping[str, Any]) -> str:
    than = f"{values['ratio']:.3g} × the largest before"
    return f"{_has_shape(values['variable'], values['shape'])} here, {than}."


def _has_shape(variable: str, shape: Sequence[int]) -> str:
    return f"{holder(variable)} {'has' if len(shape) == 1 else 'is'} {said_shape(shape)}"


def _ended_training(values: Mapping[str, Any]) -> str:
    return _left_by_training(values, f"the training loop in {place(values['loop'])}, which has ended")


def _former_model(values: Mapping[str, Any]) -> str:
    where = f" made at {place(values['place'])}" if values["place"] else ""
    return _left_by_training(values, f"a model{where}, which was trained until another one was made and not since")


def _replaced_optimizer(values: Mapping[str, Any]) -> str:
    at = f", at {place(values['place'])}" if values["place"] else ""
    left = _left_by_training(values, "an earlier optimizer").removesuffix(".")
    return f"{left}: another one makes its own for the same parameters{at}."


def _left_by_training(values: Mapping[str, Any], whose: str) -> str:
    kinds = {"optimizer state": values["states"], "gradients": values["gradients"]}
    what = " and ".join(name for name, there in kinds.items() if there)
    bytes_, live = format_bytes(values["retained"]), format_bytes(values["live"])
    if values["holder"]:
        return f"{holder(values['holder'])} keeps {bytes_} of the {live} in use: {what} of {whose}."
    return f"{bytes_} of the {live} in use are {what} of {whose}."


def _at_work(values: Mapping[str, Any]) -> str:
    """Without a loop nothing tells what of it earlier work has left."""
    phase = {"forward": "forward ", "backward": "backward "}.get(values["phase"] or "", "")
    return f"The {phase}pass underway holds at most" if phase else "This pass holds"


CAUSES: dict[str, Sentence] = {
    "causes.oversized_request.cap": "One request for {size:bytes}, at {site:place}: more than the {limit:bytes} that "
    "this process is capped at.",
    "causes.oversized_request.card": "One request for {size:bytes}, at {site:place}: more than the {limit:bytes} that "
    "the card can give.",
    "causes.oversized_request.limit": "One request for {size:bytes}, at {site:place}: more than the {limit:bytes} that "
    "this process may hold.",
    "causes.oversized_request.refused": "One request for {size:bytes}, at {site:place}: refused although this process "
    "never held more than {limit:bytes}.",
    "causes.growth.holder": "{holder:holder} holds {retained:bytes} of the {live:bytes} in use: {tensors:n tensor}[ "
    "of {its_graph}][ from {passes:n finished pass/finished passes}][{this}][, {per_pass:bytes} more every pass].",
    "causes.growth.views": "{holder:holder} holds {retained:bytes} of the {live:bytes} in use: {tensors:n view} that "
    "keep whole tensors alive[, from {passes:n finished pass/finished passes}][{this}][, "
    "{per_pass:bytes} more every pass].",
    "causes.growth.beside": f"{{holder:holder}} holds {_ANOTHER}",
    "causes.growth.exceptions": "{holder:holder} keeps alive {retained:bytes} of the {live:bytes} in use: more and "
    "more exceptions, whose tracebacks keep the local variables of finished calls.",
    "causes.growth.cycle": "{retained:bytes} of the {live:bytes} in use are kept by reference cycles that nothing "
    "reaches and the garbage collector cannot see ({cycle}), from {passes:n finished pass/finished passes}[, "
    "{per_pass:bytes} more every pass].",
    "causes.growth.hooks": "{hooks:n hook} registered on [{each} ]{module:holder} keep alive {retained:bytes} of the "
    "{live:bytes} in use[, each with a `{part}` of its own].",
    "causes.growth.models": "{passes:n finished pass/finished passes} of the loop in {loop:place} left a model each, "
    "with gradients and optimizer state: {bytes:bytes} are still alive.",
    "causes.growth.parameters": "{passes:n finished pass/finished passes} of the loop in {loop:place} made "
    "parameters that are still alive, {bytes:bytes} of them.",
    "causes.growth.passes": "Memory grows by {per_pass:bytes} every pass[ of the loop in {loop:place}]: "
    "{passes:n pass/passes} left {bytes:bytes} behind[, most of it allocated at {place:place}].",
    "causes.growth.every": "Memory grows by {each:bytes} every {every} passes[ of the loop in {loop:place}]: "
    "{passes:n pass/passes} left {bytes:bytes} behind[, most of it allocated at {place:place}].",
    "causes.growth.rising": "A tensor is joined to again and again at {place:place}: after {joins:n join} it has "
    "{bytes:bytes}, {per_join:bytes} more each time, and each join needs the old and the new one at once.",
    "causes.growth.reallocation": "One tensor is replaced by a larger one again and again at {place:place}: it has "
    "grown to {bytes:bytes}, {per_pass:bytes} more each time.",
    "causes.growth.time": "What {place:place} allocates is never freed: {bytes:bytes} of it are alive.",
    "causes.growth.reached": "{holder:holder} reaches {bytes:bytes} of it.",
    "causes.growth.without": "Without {it}, everything else and this request need {needs:bytes} of the "
    "{limit:bytes} that this process may hold.",
    "causes.growth.without_capped": "Without {it}, everything else and this request need {needs:bytes} of the "
    "{limit:bytes} that this process is capped at.",
    "causes.in_pieces": "Another {usable:bytes} was free, but in pieces of at most {largest:bytes}, so that it "
    "failed sooner.",
    "causes.retained.beside_holes": "That alone would not have been enough: another {usable:bytes} was free, but in "
    "pieces of at most {largest:bytes}.",
    "causes.retained.exception": "{holder:holder} keeps alive {retained:bytes} of the {live:bytes} in use: a stored "
    "exception holds the variables of calls that have ended.",
    "causes.retained.cycle": "{retained:bytes} of the {live:bytes} in use are garbage: a reference cycle that nothing "
    "reaches ({cycle}).",
    "causes.retained.optimizer": "{holder:holder} keeps alive {retained:bytes} of the {live:bytes} in use: parameters "
    "that no module holds any more, their gradients, and their optimizer state.",
    "causes.retained.finished": "{holder:holder} keeps alive {retained:bytes} of the {live:bytes} in use for calls "
    "that have ended.",
    "causes.retained.unread": _unread,
    "causes.retained.by_hooks": "Hooks that are still registered on it keep {retained:bytes} of that.",
    "causes.retained.graph": "{holder:holder} keeps the autograd graph that it was computed with: {retained:bytes} "
    "of the {live:bytes} in use. No backward is to come: the code that still reads {holder:holder} runs under "
    "`no_grad`.",
    "causes.retained.view": "{holder:holder} keeps alive {retained:bytes} of the {live:bytes} in use, and shows "
    "{shows:bytes} of that: a view keeps the whole tensor that it is a part of.",
    "causes.retained.frozen_states": "{retained:bytes} of the {live:bytes} in use are optimizer state of "
    "{module:holder}, whose parameters are frozen by now.",
    "causes.retained.frozen": "{retained:bytes} of the {live:bytes} in use are gradients of {module:holder}, whose "
    "parameters are frozen by now: no backward adds to them.",
    "causes.retained.also": f"{{holder:holder}} keeps {_ANOTHER}",
    "causes.retained.also_frozen": f"Gradients of {{module:holder}}, frozen as well, take {_ANOTHER}",
    "causes.retained.also_frozen_states": f"Optimizer state of {{module:holder}}, frozen as well, takes {_ANOTHER}",
    "causes.retained.deferred": "{holder:holder} alone keeps alive {retained:bytes} of the {live:bytes} in use, for a "
    "call that waits for its time.",
    "causes.retained.history": "{holder:holder} keeps alive {retained:bytes} of the {live:bytes} in use: the history "
    "of what the cells of a notebook have shown.",
    "causes.retained.ended_training": _ended_training,
    "causes.retained.replaced_optimizer": _replaced_optimizer,
    "causes.retained.calls": "{retained:bytes} of the {live:bytes} in use were left by calls that have returned[, most "
    "of it allocated at {place:place}]; this file does not tell whether anything still reads it.",
    "causes.retained.collection": "{holder:holder} keeps alive {retained:bytes} of the {live:bytes} in use: a loop "
    "that has ended filled it[, most of it allocated at {place:place}], and no running code is known to read it.",
    "causes.retained.statements": "{retained:bytes} of the {live:bytes} in use were there before the work underway "
    "began[, most of it allocated at {place:place}]; this file does not tell whether anything still reads it.",
    "causes.retained.pass": "{retained:bytes} of the {live:bytes} in use were made by the pass before, and are still "
    "alive while this one runs[, most of it allocated at {place:place}]: a variable may keep them until it is assigned "
    "anew.",
    "causes.retained.former_model": _former_model,
    "causes.retained.loaded": "{retained:bytes} of the {live:bytes} in use are a checkpoint that was loaded onto the "
    "card[ at {place:place}][, in {holder:holder}]; tensors of the same sizes were made for what was copied from it.",
    "causes.retained.failed_tries": "{retained:bytes} of the {live:bytes} in use were allocated by earlier passes of "
    "this loop that ran out of memory as well: something keeps them alive, such as a stored exception.",
    "causes.private_pools": "{walled:bytes} are free, but inside {pools:n private pool} (CUDA graphs or MemPools) that "
    "this request may not use. In the ordinary pool they would have served the {size:bytes}.",
    "causes.private_pools_closely": "{walled:bytes} are free, but inside {pools:n private pool} (CUDA graphs or "
    "MemPools) that this request may not use. In the ordinary pool they would have served the {size:bytes}, with "
    "little to spare.",
    "causes.private_pools.each_pass": "Each of the {passes} passes of the loop in {loop:place} has made one of them.",
    "causes.private_pools.most": lambda values: (
        f"{format_bytes(values['free'])} of that is in {holder(values['name'])}, {_POOLS[values['kind']]}."
    ),
    "causes.other_stream.opened": "The {size:bytes} would fit now: {opened:bytes} came free in one piece while this "
    "request waited for another stream, but the allocator did not look again. A retry succeeds.",
    "causes.other_stream.free": lambda values: (
        f"{format_bytes(values['free'])} are free, but belong to other streams; this request runs on "
        f"{_stream(values)} and may not use them."
    ),
    "causes.other_stream.kept_by": lambda values: (
        f"{plural(values['blocks'], 'block')} of {format_bytes(values['bytes'])} from {place(values['place'])} "
        f"{'keeps' if values['blocks'] == 1 else 'keep'} {format_bytes(values['kept'])} of that from being given back "
        "to the device."
    ),
    "causes.other_stream.pending": lambda values: (
        f"{format_bytes(values['pending'])} have been freed, but wait for another stream; this request runs on "
        f"{_stream(values)} and may not use them yet."
    ),
    "causes.other_stream.both": lambda values: (
        f"{format_bytes(values['free'])} are free, but belong to other streams, and {format_bytes(values['pending'])} "
        f"have been freed, but wait for one; this request runs on {_stream(values)} and may not use them."
    ),
    "causes.outside_allocator": _outside,
    "causes.fragmentation": _fragmented,
    "causes.fragmentation.pinned_all": lambda values: _pinned(values, ""),
    "causes.fragmentation.pinned": lambda values: _pinned(values, f" of {format_bytes(values['bytes'])} of it"),
    "causes.fragmentation.holder": "{holder:holder} keeps {bytes:bytes} from that line alive.",
    "causes.capacity.outsized": lambda values: (
        f"One request, at {place(values['place'])}, asks for {format_bytes(values['size'])}: "
        f"{values['times']:.0f} × the largest activation before it."
    ),
    "causes.capacity.keeper": "{holder:holder} keeps {retained:bytes} of the {live:bytes} in use.",
    "causes.capacity.drivers": _drivers,
    "causes.capacity.loading": (
        "The checkpoint that is being loaded[ at {place:place}] takes {bytes:bytes} of it so far."
    ),
    "causes.capacity.needs": _needs,
    "causes.capacity.nearly": _nearly,
    "causes.capacity.like_last": _like_last,
    "causes.capacity.underway": lambda values: (
        f"{_at_work(values)} {format_bytes(values['made'])} so far"
        + (f", where passes before it needed at most {format_bytes(values['before'])}" if values["before"] else "")
        + f"; no free piece was large enough for its next request, of {format_bytes(values['size'])}."
    ),
    "causes.capacity.rest_unknown": "In one piece, the free memory would have served the request, with {bytes:bytes} "
    "to spare. What the rest of the pass would have needed is not known: no pass like it had finished.",
    "causes.capacity.tensor": "{holder:holder} is one tensor of {bytes:bytes}.",
    "causes.capacity.idle_model": "{holder:holder}, a model that was not running, holds {bytes:bytes} of the "
    "{live:bytes} in use.",
    "causes.capacity.untrained_model": "{holder:holder}, a model without gradients, holds {bytes:bytes} of the "
    "{live:bytes} in use.",
    "causes.capacity.rising": "Each of the last passes needed about {bytes:bytes} more than the one before.",
    "causes.capacity.asked": "{size:bytes} more did not fit.",
    "causes.capacity.allocated": "{bytes:bytes} are in use; {size:bytes} more did not fit.",
    "causes.capacity.as_larger": "The whole pass would take about {bytes:bytes}, if the rest of it grows in the "
    "same proportion.",
    "causes.capacity.history": "L-BFGS is filling its history, {bytes:bytes} so far: two more tensors as large as the "
    "parameters each step, until it has `history_size` of them.",
    "causes.capacity.first_step": "The optimizer had made {made:bytes} of its {needs:bytes} of state in its first step."
    "[ Later steps like it need {more:bytes} at their peak.]",
    "causes.capacity.short": "Even in one piece, the free memory that this request may use would be {bytes:bytes} too "
    "little.",
    "causes.capacity.close": "Even in one piece, the free memory would have left only {bytes:bytes} for all that "
    "follows.",
    "causes.capacity.nothing_left": "Even in one piece, the free memory would have left nothing for what follows.",
    "causes.failed_at_once": "{calls:n call} of {place:place} ran at once, and this is not the first of them to fail: "
    "{bytes:bytes} of the {live:bytes} in use were allocated by them.",
    "causes.in_progress": "{calls:n call} of {place:place} were in progress at once[ and hold {bytes:bytes} of the "
    "{live:bytes} in use].",
    "causes.pass.first": "It failed in the first pass[ of the loop in {loop:place}].",
    "causes.pass.after": lambda values: (
        f"{'At least ' if values.get('is_part') else ''}{plural(values['completed'], 'pass', 'passes')} of the loop"
        f"{' in ' + place(values['loop']) if values['loop'] else ''} had fitted before."
    ),
    "causes.pass.gathers": "The loop[ in {loop:place}] keeps what its passes make until it ends[, for the backward at "
    "{backward:place}]: {passes:n pass/passes} so far[; its last run had {before}].",
    "causes.pass.left": lambda values: (
        f"{holder(values['holder'])} still keeps {format_bytes(values['bytes'])} of the pass before."
        if values["holder"]
        else f"{format_bytes(values['bytes'])} of it are of the pass before, and still alive."
    ),
    "causes.pass.keeps": "{completed:n pass/passes} before this one fitted. When the last one asked for the same, it "
    "held {before:bytes} of what it had made; this one holds {bytes:bytes}[, most of it made at {place:place}].",
    "causes.pass.longer": _longer,
    "causes.pass.larger_call": "This call of `{function}` asks for {ratio:.3g} × as much memory[ at {place:place}] as "
    "any before it.",
    "causes.pass.input": _larger_input,
    "causes.pass.staircase": "Passes ask for more and more: {first:bytes} in the first, {last:bytes} in this one[, at "
    "{place:place}].",
    "causes.cap": "This process is capped at {cap:bytes}, while the card has {free:bytes} free.",
    "causes.cap.inferred": "This process is capped (at about {limit:bytes}), while the card has {free:bytes} free.",
}
