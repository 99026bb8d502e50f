"""What to say of the settings of the allocator: which would have helped, which would not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomscope.analysis.records import Advice
from oomscope.analysis.remedies.by_driver import CONF
from oomscope.analysis.remedies.replays import refusing, served_text, serving
from oomscope.analysis.verdict.circumstances import Subject
from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.analysis.whatif.records import EXPANDABLE, WhatIfRow
from oomscope.units import format_bytes

_PRICES = {
    "expandable_segments": "Some platforms do not support it (WSL2, Jetson), and some versions cannot share such "
    "tensors by IPC",
    "max_split_size_mb": "Large blocks are not split, so more may be reserved at other requests",
    "roundup_power2_divisions": "Every request is rounded up, so more is allocated",
    "garbage_collection_threshold": "Memory is given back and taken anew, which costs time",
    "empty_cache": "Each call waits for the device, and what it gives back is taken anew",
}


def settings_that_serve(subject: Subject, request: FailedRequest) -> Iterator[Advice]:
    """The best setting that serves `request` by replay; without a replay, the one that was made for holes."""
    served = serving(subject.whatif, request.entry)
    if served:
        best = served[0]
        yield Advice(
            _use(best),
            f"Replayed on this recording, {served_text(best, request)}.",
            None,
            _price(best.setting),
            CONF,
        )
    elif not subject.config.expandable_segments and not _replayed(subject, EXPANDABLE):
        yield Advice(
            _set(EXPANDABLE),
            "It was made for sizes that change: freed pages can serve any later request. Not tried on this "
            "recording: oomscope whatif tells whether it would have been enough.",
            None,
            _price(EXPANDABLE),
            CONF,
        )


def settings_that_do_not_serve(subject: Subject, request: FailedRequest, cause: str) -> Iterator[Advice]:
    """The settings that fail by replay, or that arithmetic refutes."""
    row = subject.whatif.row(EXPANDABLE) if subject.whatif else None
    refused = refusing(subject.whatif, request.entry)
    if subject.config.expandable_segments:
        yield refutation("expandable_segments", "It was on when this was recorded.")
    elif row is not None and row in refused:
        yield refutation(
            f"PYTORCH_ALLOC_CONF={EXPANDABLE}", "Replayed on this recording, the request fails with it as well."
        )
    elif cause in ("capacity", "growth") and request.free.usable < request.size:
        yield _little_to_gain(request, row)
    others = [one for one in refused if one.setting != EXPANDABLE and not one.setting.startswith("empty_cache")]
    if others:
        them = "any of them" if len(others) > 1 else "it"
        yield refutation(
            _listed([one.setting for one in others]),
            f"Replayed on this recording, the run does not get past this request with {them}.",
        )


def refutation(action: str, why: str) -> Advice:
    """Advice that is often given, and why it is none here."""
    return Advice(action, why, None, "", "", refuted=True)


def _little_to_gain(request: FailedRequest, row: WhatIfRow | None) -> Advice:
    if row is not None and row.served.get(request.entry):
        return refutation(
            f"PYTORCH_ALLOC_CONF={EXPANDABLE} alone", "The request would just fit, but what is live stays."
        )
    return refutation(
        f"PYTORCH_ALLOC_CONF={EXPANDABLE}",
        f"It makes free pieces usable; only {format_bytes(request.free.usable)} are free here, and the request "
        f"needs {format_bytes(request.size)}.",
    )


def _replayed(subject: Subject, setting: str) -> bool:
    return subject.whatif is not None and subject.whatif.row(setting) is not None


def _use(row: WhatIfRow) -> str:
    if row.setting.startswith("empty_cache"):
        return f"Call torch.cuda.{row.setting.replace('empty_cache', 'empty_cache()', 1)}."
    return _set(row.conf or row.setting)


def _set(conf: str) -> str:
    return f"Set PYTORCH_ALLOC_CONF={conf} (PYTORCH_CUDA_ALLOC_CONF before torch 2.9)."


def _price(setting: str) -> str:
    return next((price for name, price in _PRICES.items() if setting.startswith(name)), "")


def _listed(settings: Sequence[str]) -> str:
    """``max_split_size_mb:128, 256, 512; roundup_power2_divisions:8``: each name once."""
    values: dict[str, list[str]] = {}
    for setting in settings:
        name, _, value = setting.partition(":")
        values.setdefault(name, []).append(value)
    return "; ".join(f"{name}:{', '.join(found)}" if found != [""] else name for name, found in values.items())
