"""What to do, and what would not help: each with its reason, its effect in bytes, its price and its source."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.records import Advice, Driver, Growth, Pin
from oomscope.analysis.remedies.by_driver import CONF, FAQ, GRAPHS, MEMORY, REMEDIES
from oomscope.analysis.remedies.settings import refutation, settings_that_do_not_serve, settings_that_serve
from oomscope.analysis.verdict.circumstances import Subject
from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.analysis.verdict.headlines import place
from oomscope.units import format_bytes, plural


def advise(
    subject: Subject,
    request: FailedRequest,
    cause: str,
    growth: tuple[Growth, ...],
    drivers: tuple[Driver, ...],
    pins: tuple[Pin, ...],
) -> tuple[Advice, ...]:
    """Advice for `request`, what helps most first, what was refuted last."""
    against: dict[str, Iterator[Advice]] = {
        "growth": _against_growth(growth, drivers),
        "fragmentation": _against_fragmentation(subject, request, pins),
        "private_pools": _against_walls(request),
        "other_stream": _against_streams(request),
        "outside_allocator": _against_outside(subject),
        "oversized_request": _against_size(request),
        "capacity": _against_capacity(subject, request, drivers),
    }
    return (*against[cause], *_refuted(subject, request, cause))


def _against_walls(request: FailedRequest) -> Iterator[Advice]:
    yield Advice(
        "Capture the graphs into one pool (pass pool=first_graph.pool()), the largest batch first, or capture fewer "
        "sizes.",
        "Graphs that are not replayed at the same time can share a pool; today each keeps its own free bytes.",
        request.free.walled,
        "Graphs of one pool must be replayed in the order of their capture",
        GRAPHS,
    )


def _against_streams(request: FailedRequest) -> Iterator[Advice]:
    yield Advice(
        "Allocate on one stream, or wait for the side stream (stream.synchronize(), wait_stream) before the next large "
        "request; avoid record_stream where the order of streams is known.",
        "The allocator gives a block back only to the stream it was allocated on, and a recorded one only when that "
        "stream has passed.",
        request.free.other_streams + request.free.pending,
        "Waiting costs overlap",
        MEMORY,
    )


def _against_size(request: FailedRequest) -> Iterator[Advice]:
    yield Advice(
        f"Make {place(request.site)} work in pieces, and look for an accidental broadcast: N×1 against N, a one-hot, a "
        "pairwise distance.",
        f"One tensor of {format_bytes(request.size)} is asked for.",
        request.size,
        "A loop over pieces",
        FAQ,
    )


def _against_growth(growth: tuple[Growth, ...], drivers: tuple[Driver, ...]) -> Iterator[Advice]:
    if "retained_graph" in {driver.slug for driver in drivers[:3]}:
        generations = [one for one in growth if one.kind == "generations"]
        if generations:
            yield _let_go_of_graphs(generations)
        growth = tuple(one for one in growth if one.kind != "generations")
    for one in growth[:3]:
        where = place(one.caller or one.site)
        if one.kind == "reallocation":
            action = f"Bound or preallocate the tensor that {where} makes anew, or keep it on the CPU."
        else:
            action = f"Let go of what {where} makes: .cpu() it, .detach() it, or empty the list that keeps it."
        yield Advice(
            action,
            f"{plural(one.generations, 'generation')} of it are alive; only the newest is needed.",
            one.spared_bytes,
            "none, if the older ones are not used",
            FAQ,
        )


def _let_go_of_graphs(growth: list[Growth]) -> Advice:
    """One graph keeps what many sites made: the advice is one as well."""
    places = list(dict.fromkeys(place(one.site or one.caller) for one in growth))
    return Advice(
        "Add up numbers, not tensors: use loss.item() or loss.detach() for whatever is kept from step to step (a "
        "running loss, a list, a dict of metrics, a hook).",
        f"A kept tensor keeps the graph that made it: what {', '.join(places[:3])}"
        + (f" and {plural(len(places) - 3, 'more site')}" if len(places) > 3 else "")
        + f" made in {plural(max(one.generations for one in growth), 'step')} is alive; only the newest is needed.",
        sum(one.spared_bytes for one in growth),
        "none, if no later backward needs the older graphs",
        FAQ,
    )


def _against_fragmentation(subject: Subject, request: FailedRequest, pins: tuple[Pin, ...]) -> Iterator[Advice]:
    yield from settings_that_serve(subject, request)
    for pin in pins[:2]:
        yield Advice(
            f"Move or free what {place(pin.site or pin.caller)} keeps: allocate it before the large tensors, keep it "
            "in one tensor, or copy it to the CPU.",
            _scattered(pin),
            pin.alone_bytes or pin.stranded_bytes,
            "A change of the program",
            MEMORY,
        )
    if subject.varied_sizes > 4:
        yield Advice(
            "Pad or bucket the lengths, and run the largest batch first.",
            f"{place(request.site)} has asked for {subject.varied_sizes} different sizes; each leaves its own holes.",
            None,
            "Padding computes on nothing",
            CONF,
        )


def _scattered(pin: Pin) -> str:
    if pin.blocks == 1:
        return f"One block of {format_bytes(pin.largest)} keeps the rest of its segment."
    sizes = format_bytes(pin.largest)
    if pin.smallest != pin.largest:
        sizes = f"{format_bytes(pin.smallest)} to {sizes}"
    places = plural(pin.segments, "segment or page", "segments or pages")
    return f"{plural(pin.blocks, 'block')} of {sizes} lie scattered over {places}."


def _against_outside(subject: Subject) -> Iterator[Advice]:
    who = ", ".join(name for name, _ in subject.outside_names[:3])
    yield Advice(
        "End or move the other users of the card" + (f": {who}." if who else " (nvidia-smi lists them)."),
        "Nothing in this process's own allocations is unusual.",
        subject.outside,
        "",
        MEMORY,
    )


def _against_capacity(subject: Subject, request: FailedRequest, drivers: tuple[Driver, ...]) -> Iterator[Advice]:
    for driver in drivers[:3]:
        if driver.slug == "gradients" and not subject.in_forward:
            continue  # backward and the optimizer's step need them
        remedy = REMEDIES.get(driver.slug)
        if remedy is not None and driver.bytes > 0.05 * max(request.totals.allocated, 1):
            saves = int(driver.bytes * remedy.share)
            yield Advice(remedy.action, remedy.why, saves, remedy.price, remedy.source)


def _refuted(subject: Subject, request: FailedRequest, cause: str) -> Iterator[Advice]:
    yield from settings_that_do_not_serve(subject, request, cause)
    yield refutation(
        "torch.cuda.empty_cache()",
        f"Before it failed, the allocator released every wholly free segment itself; "
        f"{format_bytes(request.free.releasable)} were left to release.",
    )
    fixed = sum(subject.categories.get(kind, 0) for kind in ("parameter", "optimizer_state", "gradient", "buffer"))
    if cause == "capacity" and fixed > 0.5 * max(request.totals.allocated, 1):
        yield refutation(
            "A smaller batch", f"It does not shrink {format_bytes(fixed)} of parameters, gradients and optimizer state."
        )
    if cause == "growth":
        yield refutation("A smaller batch", "It only delays the end: what grows goes on growing.")
