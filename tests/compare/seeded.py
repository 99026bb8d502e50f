"""One training program and seeded changes of it, with what is true of each; written before what finds them.

The program has a model of six layers in `model.py` (two lines a layer in one function that a loop calls, one in
another), a loss in `losses.py`, and a training loop in `train.py`. Each variant is what a small edit makes of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from oomscope.model import Snapshot
from tests.analysis.programs import MIB, TORCH, Program
from tests.builders import frame

CALL = frame("_call_impl", 1790, f"{TORCH}/nn/modules/module.py")


@dataclass(frozen=True)
class Code:
    """Where things are: the root, the names of files and functions, and by how much lines of each file moved."""

    root: str = "/workspace/train/"
    files: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    shifts: dict[str, int] = field(default_factory=dict)
    torch: str = TORCH

    def at(self, name: str, line: int, file: str) -> dict[str, Any]:
        moved = line + self.shifts.get(file, 0) + self.shifts.get(f"{file}:{line}", 0)
        return frame(self.functions.get(name, name), moved, self.root + self.files.get(file, file))

    def op(self, name: str, file: str) -> dict[str, Any]:
        return frame(name, 100, f"{self.torch}/{file}")

    @property
    def main(self) -> tuple[dict[str, Any], ...]:
        return (self.at("train", 45, "train.py"), self.at("<module>", 90, "train.py"))

    def stack(self, kind: str) -> tuple[dict[str, Any], ...]:
        call = frame("_call_impl", 1790, f"{self.torch}/nn/modules/module.py")
        linear, norm = self.op("forward", "nn/modules/linear.py"), self.op("layer_norm", "nn/functional.py")
        model = (call, self.at("forward", 60, "model.py"), call, *self.main)
        block = (self.at("block", 33, "model.py"), *model)
        return {
            "norm1": (norm, self.at("block", 31, "model.py"), *model),
            "norm2": (norm, self.at("block", 32, "model.py"), *model),
            "up": (linear, call, self.at("mlp", 20, "model.py"), *block),
            "gelu": (self.op("gelu", "nn/functional.py"), self.at("mlp", 21, "model.py"), *block),
            "down": (linear, call, self.at("mlp", 22, "model.py"), *block),
            "head": (linear, call, self.at("forward", 62, "model.py"), call, *self.main),
            "loss": (
                self.op("cross_entropy", "nn/functional.py"),
                self.at("token_loss", 12, "losses.py"),
                self.at("train", 47, "train.py"),
                *self.main[1:],
            ),
            "batch": (self.at("batches", 20, "train.py"), self.at("train", 44, "train.py"), *self.main[1:]),
            "kept": (
                self.op("detach", "_tensor.py"),
                self.at("log_metrics", 70, "train.py"),
                self.at("train", 49, "train.py"),
                *self.main[1:],
            ),
            "state": (
                self.op("_init_group", "optim/adam.py"),
                self.op("step", "optim/adam.py"),
                self.at("train", 50, "train.py"),
                *self.main[1:],
            ),
            "load": (
                self.op("convert", "nn/modules/module.py"),
                self.op("_apply", "nn/modules/module.py"),
                self.op("to", "nn/modules/module.py"),
                self.at("make_model", 10, "train.py"),
                self.at("<module>", 88, "train.py"),
            ),
        }[kind]


@dataclass(frozen=True)
class Variant:
    """An edit. `kept` MiB stay alive after every step, at the line that logs metrics (made there, or by `keeps`)."""

    code: Code = Code()
    batch: int = 4
    steps: int = 4
    kept: int = 0
    keeps: str = "kept"
    logs: bool = True
    without: tuple[str, ...] = ()
    device: int = 0
    layers: int = 6

    def snapshot(self) -> Snapshot:
        program = Program()
        seeded_run(program, self)
        found = program.snapshot()
        if self.device:
            found = replace(found, devices=tuple(replace(one, index=self.device) for one in found.devices))
        return found


def seeded_run(program: Program, variant: Variant) -> None:
    """Let `program` do what the variant does."""
    stack, batch = variant.code.stack, variant.batch
    for _ in range(variant.layers):
        program.alloc(16 * MIB, stack("load"))
        program.alloc(4096, stack("load"))
    state: list[int] = []
    for _ in range(variant.steps):
        live = [program.alloc(64 * 1024 * batch, stack("batch"))]
        for _ in range(variant.layers):
            for kind, size in (("norm1", 1), ("norm2", 1), ("up", 4), ("gelu", 4), ("down", 1)):
                if kind not in variant.without:
                    live.append(program.alloc(size * MIB * batch, stack(kind)))
        live.append(program.alloc(20 * MIB * batch, stack("head")))
        live.append(program.alloc(20 * MIB * batch, stack("loss")))
        if variant.logs:
            small = program.alloc(2 * MIB, stack("kept"))
            live.append(small)
        if variant.kept:
            program.alloc(variant.kept * MIB, stack(variant.keeps))
        for address in reversed(live):
            program.free(address)
        if not state:
            state = [program.alloc(16 * MIB, stack("state")) for _ in range(2 * variant.layers)]


PLAIN = Variant()
MOVED = Code(shifts={"model.py": 7, "train.py": -3, "losses.py": 1})
INSERTED = Code(shifts={"model.py": 1})
"""One line more above: each of two neighbouring lines stands where the other stood."""
RENAMED_FILE = Code(files={"losses.py": "objectives.py", "model.py": "network.py"})
RENAMED_FUNCTIONS = Code(functions={"mlp": "feed_forward", "token_loss": "next_token_loss"})
ROOT = Code(root="/home/someone/run 7/src/", torch="/opt/conda/lib/python3.11/site-packages/torch")
ALL = Code(
    root="C:\\work\\",
    files={"losses.py": "objectives.py", "train.py": "finetune.py"},
    functions={"mlp": "feed_forward"},
    shifts={"model.py": 12, "train.py": 5},
)


@dataclass(frozen=True)
class Truth:
    """What is true of a variant against the plain program, at the end unless `at` says otherwise.

    Attributes:
        matched: how the site of some kind of block is matched; kinds that are not named are ``same``.
        first: the kind whose site is the first row, with its change in bytes; None: nothing changed but places.
        factor: the one ratio.
        new, gone: kinds whose sites are.
    """

    variant: Variant
    matched: dict[str, str] = field(default_factory=dict)
    first: tuple[str, int] | None = None
    factor: float | None = None
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    at: str = "peak"


ALL_KINDS = ("norm1", "norm2", "up", "gelu", "down", "head", "loss", "batch", "kept", "state", "load")


def _each(how: str, *but: str, **others: str) -> dict[str, str]:
    return {kind: how for kind in ALL_KINDS if kind not in but} | others


TRUTHS = {
    "lines moved": Truth(Variant(MOVED), _each("moved")),
    "a line inserted above": Truth(
        Variant(INSERTED), dict.fromkeys(("norm1", "norm2", "up", "gelu", "down", "head"), "moved")
    ),
    "files renamed": Truth(
        Variant(RENAMED_FILE),
        dict.fromkeys(("norm1", "norm2", "up", "gelu", "down", "head", "loss"), "renamed"),
    ),
    "functions renamed": Truth(Variant(RENAMED_FUNCTIONS), dict.fromkeys(("up", "gelu", "down", "loss"), "renamed")),
    "another install root": Truth(Variant(ROOT)),
    "rank 3": Truth(Variant(device=3)),
    "batch doubled": Truth(Variant(batch=8), factor=2.0),
    "batch 1.5": Truth(Variant(batch=6), factor=1.5),
    "one more tensor kept a step": Truth(Variant(kept=8), first=("kept", 4 * 8 * MIB)),
    "kept by a line that made the same before": Truth(Variant(kept=4, keeps="down"), first=("down", 4 * 4 * MIB)),
    "one site gone": Truth(Variant(without=("gelu",)), first=("gelu", -6 * 16 * MIB), gone=("gelu",)),
    "batch doubled and a tensor kept": Truth(Variant(batch=8, kept=8), first=("kept", 4 * 8 * MIB), factor=2.0),
    "a tensor kept in a moved and renamed file": Truth(
        Variant(ALL, kept=8),
        _each("renamed", "norm1", "norm2", "head", norm1="moved", norm2="moved", head="moved"),
        first=("kept", 4 * 8 * MIB),
    ),
    "all at once, batch doubled, rank 3": Truth(
        Variant(ALL, batch=8, kept=8, device=3),
        _each("renamed", "norm1", "norm2", "head", norm1="moved", norm2="moved", head="moved"),
        first=("kept", 4 * 8 * MIB),
        factor=2.0,
    ),
    "a new line that keeps": Truth(
        Variant(kept=8), first=("kept", 4 * 8 * MIB), new=("kept",), matched={"kept": "new"}
    ),
}
"""By name. The last is against a program that does not log metrics."""
