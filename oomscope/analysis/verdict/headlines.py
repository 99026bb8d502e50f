"""The sentence that a colleague would say across the desk, one for each cause."""

from __future__ import annotations

from oomscope.analysis.records import Driver, Growth, Location, Pin
from oomscope.analysis.verdict.circumstances import Subject
from oomscope.analysis.verdict.counterfactuals import Tested
from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.units import format_bytes, plural

_DRIVER_WORDS = {
    "activations": "activations",
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer_state": "optimizer state",
    "optimizer_temporaries": "temporaries of the optimizer step",
    "logits": "logits and their loss",
    "attention_scores": "attention scores",
    "kv_cache": "a key-value cache",
    "retained_graph": "the graphs of earlier steps",
    "accumulated_tensors": "tensors kept from earlier steps",
    "duplicate_model": "a second copy of the model",
    "workspace": "library workspaces",
    "unknown": "blocks of unknown kind",
}


def driver_words(slug: str) -> str:
    """A driver in words."""
    return _DRIVER_WORDS.get(slug, slug.replace("_", " "))


def place(location: Location | None) -> str:
    """A line of code as people say it: ``fill_cache (workloads.py:227)``."""
    if location is None:
        return "code without Python frames"
    file = location.file.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{location.function} ({file}:{location.line})"


def headline(
    subject: Subject,
    request: FailedRequest,
    tested: Tested,
    growth: tuple[Growth, ...],
    drivers: tuple[Driver, ...],
    pins: tuple[Pin, ...],
) -> str:
    """Why `request` failed, in one or two sentences."""
    if tested.cause == "growth":
        return _growth(subject, request, tested, growth)
    if tested.cause == "fragmentation":
        return _fragmentation(request, tested, pins)
    if tested.cause == "private_pools":
        return _private_pools(request, tested)
    if tested.cause == "other_stream":
        return _other_stream(request)
    if tested.cause == "outside_allocator":
        return _outside(subject, request)
    if tested.cause == "oversized_request":
        return (
            f"One request for {format_bytes(request.size)}, at {place(request.site)}: "
            f"more than the {format_bytes(request.limit.low)} this process may hold in all."
        )
    return _capacity(request, drivers)


def _growth(subject: Subject, request: FailedRequest, tested: Tested, growth: tuple[Growth, ...]) -> str:
    first = growth[0]
    per_step = sum(one.bytes_per_step for one in growth)
    spared = tested.qualifying[0].bytes
    held = f", held by {subject.holder}" if subject.holder else ""
    if first.kind == "reallocation":
        what = f"One tensor is made anew, a little larger each time, at {place(first.caller or first.site)}{held}"
    elif first.kind == "time":
        what = (
            f"What {place(first.caller or first.site)} allocates is never freed: {format_bytes(first.live_bytes)} are "
            f"alive{held}"
        )
    else:
        what = (
            f"Every {'round within the last step' if first.within_step else 'step'} keeps {format_bytes(per_step)} "
            f"that the one before it did not: {first.generations} "
            f"generations are alive from {place(first.site)}{held}"
        )
    needs = max(request.totals.active - spared + request.size, 0)
    return (
        f"{what}. Without what has piled up, the request would need {format_bytes(needs)} of the "
        f"{format_bytes(request.limit.low)} this process may hold."
    )


def _fragmentation(request: FailedRequest, tested: Tested, pins: tuple[Pin, ...]) -> str:
    free = request.free
    text = (
        f"The memory was there, in pieces. {format_bytes(free.usable)} of what PyTorch holds is free, but in holes "
        f"of at most {format_bytes(free.largest)}; as one piece, the {format_bytes(request.size)} would have fitted "
        f"with {format_bytes(tested.qualifying[0].spare)} to spare."
    )
    if pins:
        pin = pins[0]
        keep = "keeps" if pin.blocks == 1 else "keep"
        where = place(pin.site or pin.caller)
        share = "those holes" if pin.stranded_bytes >= free.usable else f"{format_bytes(pin.stranded_bytes)} of holes"
        text += f" {plural(pin.blocks, 'block')} from {where} {keep} {share} open."
    return text


def _private_pools(request: FailedRequest, tested: Tested) -> str:
    segments = request.layout.segments
    pools = len({pool for pool in segments.pool.tolist() if pool != 0})
    close = "" if tested.certain else ", though with little room to spare"
    return (
        f"{format_bytes(request.free.walled)} are free, but inside {plural(pools, 'private pool')} (CUDA graphs or "
        f"MemPools), where this request may not go. Without those walls the {format_bytes(request.size)} would have "
        f"fitted{close}."
    )


def _other_stream(request: FailedRequest) -> str:
    free, parts = request.free, []
    if free.other_streams:
        parts.append(f"{format_bytes(free.other_streams)} are free, but belong to other streams")
    if free.pending:
        parts.append(f"{format_bytes(free.pending)} are given back, but wait for another stream")
    where = "the default stream" if request.stream == 0 else f"stream 0x{request.stream & (1 << 64) - 1:x}"
    return f"{' and '.join(parts)}; this request runs on {where} and may not use them."


def _outside(subject: Subject, request: FailedRequest) -> str:
    outside, total = subject.outside or 0, subject.total or 0
    who = ", ".join(f"{name} {format_bytes(count)}" for name, count in subject.outside_names[:3])
    return (
        f"PyTorch holds {format_bytes(request.totals.reserved)} of this {format_bytes(total)} card; "
        f"{format_bytes(outside)} belong to something else" + (f" ({who})." if who else ".")
    )


def _capacity(request: FailedRequest, drivers: tuple[Driver, ...]) -> str:
    spare = request.free.usable + request.limit.low - request.totals.reserved - request.size
    largest = [driver for driver in drivers if driver.bytes > 0.05 * max(request.totals.allocated, 1)][:3]
    what = ", ".join(f"{driver_words(driver.slug)} {format_bytes(driver.bytes)}" for driver in largest)
    begin = f"All of it is needed at once: {what}." if what else (
        f"All of it is in use: {format_bytes(request.totals.allocated)} are allocated."
    )  # fmt: skip
    if spare >= 0:
        left = f"Even with the free bytes in one piece, only {format_bytes(spare)} would have been left."
    else:
        left = f"Even with the free bytes in one piece, {format_bytes(-spare)} are missing."
    return f"{begin} {left}"
