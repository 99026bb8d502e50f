"""What the name of a range tells: a phase of training, or that torch or a library gave it."""

from __future__ import annotations

import re
from functools import lru_cache

from oomscope.analysis.records import PHASES

_LIBRARIES = re.compile(
    # Names that torch and the trainers around it give: optimizers, the profiler, data loaders, DDP, FSDP, collectives.
    r"Optimizer\.|ProfilerStep#|enumerate\(|DistributedDataParallel\.|FSDP|nccl:|gloo:|c10d::|mpi:|ucc:"
    r"|record_param_comms|## |Torch-Compiled Region|CompiledFunction|Inductor|TorchDynamo|AOTDispatcher|PyTorch"
    r"|torch\.|aten::|autograd::|\[pl\]|\[memory\]|DataParallel\.|DeepSpeed|_?pin_memory"
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WORDS_OF = {
    "forward": frozenset({"forward", "fwd"}),
    "backward": frozenset({"backward", "bwd", "backprop"}),
    "optimizer": frozenset({"optimizer", "optim"}),
}
_NUMBER = re.compile(r"[\s_#:=(\[/-]+\d+[\])]*\Z")


def is_programs(name: str) -> bool:
    """Whether the program gave `name`, and not torch or a trainer."""
    return _LIBRARIES.match(name) is None


@lru_cache(maxsize=1 << 12)
def phase_named(name: str) -> str | None:
    """The phase that a range's name says: ``forward``, ``backward`` or ``optimizer``; None for none, or for several.

    torch's ``Optimizer.step#AdamW.step`` is the optimizer's; its ``zero_grad`` gives memory back and takes none. What
    FSDP and DDP do before and after a forward is theirs.
    """
    if name.startswith("Optimizer."):
        return "optimizer" if name.startswith("Optimizer.step#") else None
    if name == "DistributedDataParallel.forward":
        return "forward"
    if not is_programs(name):
        return None
    words = {word.lower() for word in _WORDS.findall(name)}
    found = [phase for phase, those in _WORDS_OF.items() if words & those]
    return found[0] if len(found) == 1 and found[0] in PHASES else None


@lru_cache(maxsize=1 << 16)
def unnumbered(name: str) -> str:
    """`name` without the number at its end, so that ``step 7`` and ``step 8`` are one; a mere number as it is."""
    return _NUMBER.sub("", name) or name
