"""A failure that the trace does not tell of, in words."""

from __future__ import annotations

from oomscope.analysis.findings import Findings
from oomscope.analysis.verdict.refused import Refused
from oomscope.units import format_bytes, format_size
from oomscope.wording import say
from oomscope.wording.clean import clean
from oomscope.wording.messages import headline

_MOST = 3
_OF_THE_DRIVER = frozenset({"cuda-driver", "cublas", "cudnn", "nccl", "pinned-host"})
"""Messages that say nothing of the card."""


def refused_occasion(refused: Refused) -> str:
    """What happened, in a line: ``Page-locked host memory: no size printed``."""
    return f"Out of memory · {refused_what(refused)}"


def refused_verdict(findings: Findings) -> str:
    """What the message proves, and what this process's allocator held at that time."""
    refused = findings.refused
    assert refused is not None
    why = "the caching allocator's trace has no failed request" if findings.devices else "there is no history of it"
    sentences = [f"{_request(refused)}; {why}."]
    if refused.pinned:
        sentences.append(_pinned(findings))
    proofs = refused.message.proves
    sentences += [say(note) for note in proofs[:_MOST] if not refused.pinned]
    if refused.device_free is not None and refused.message.kind in _OF_THE_DRIVER:
        sentences.append(f"The card had {format_bytes(refused.device_free)} free.")
    sentences.append(_held(findings))
    return clean(" ".join(filter(None, sentences)), 900)


def _held(findings: Findings) -> str:
    """What PyTorch held at that time: of the segments, else as torch counted it."""
    if findings.main is not None:
        name, usage = findings.main.name, findings.main.usage
        return _held_text(name, usage.reserved, usage.allocated)
    recorded = findings.snapshot.recorded
    kind = recorded.device_type or "device"
    return " ".join(
        _held_text(f"{kind}:{one.index}", one.reserved, one.allocated)
        for one in recorded.devices
        if one.reserved is not None and one.allocated is not None
    )


def _held_text(name: str, reserved: int, allocated: int) -> str:
    return f"PyTorch held {format_bytes(reserved)} of {name} at that time, {format_bytes(allocated)} of it allocated."


def refused_what(refused: Refused) -> str:
    """What refused: ``Pinned host memory``, ``PyTorch on CUDA, cudaMallocAsync, device 0``."""
    if refused.pinned:
        return "Pinned host memory"
    return headline(refused.message).partition(":")[0]


def _request(refused: Refused) -> str:
    figure = refused.message.figure("requested")
    size = "" if figure is None else format_size(figure.value)
    if refused.pinned:
        return f"A request for {f'{size} of ' if size else ''}pinned host memory was refused"
    return f"{refused_what(refused)} refused a request{f' for {size}' if size else ''}"


def _pinned(findings: Findings) -> str:
    """That it was the machine's memory, whatever the words; and how much of it torch had pinned."""
    text = "It is memory of the machine, not of the card, although the message may say CUDA."
    held = None if findings.pinned is None else findings.pinned.held
    return text if held is None else f"{text} PyTorch had {format_bytes(held)} of it pinned."
