"""Scripts as traces: calls of functions written down line by line, as a recorder would see them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.analysis.programs import MIB, TORCH, Program
from tests.builders import frame

CALLED = (
    frame("_call_impl", 1790, f"{TORCH}/nn/modules/module.py"),
    frame("_wrapped_call_impl", 1779, f"{TORCH}/nn/modules/module.py"),
)
IN_THREAD = (
    frame("run", 1012, "/usr/lib/python3.12/threading.py"),
    frame("_bootstrap_inner", 1075, "/usr/lib/python3.12/threading.py"),
    frame("_bootstrap", 1032, "/usr/lib/python3.12/threading.py"),
)
LINEAR = frame("forward", 134, f"{TORCH}/nn/modules/linear.py")
BACKWARD_CALL = (
    frame("_engine_run_backward", 841, f"{TORCH}/autograd/graph.py"),
    frame("backward", 374, f"{TORCH}/autograd/__init__.py"),
    frame("backward", 630, f"{TORCH}/_tensor.py"),
)
OPTIMIZER_CALL = (
    frame("_multi_tensor_adam", 791, f"{TORCH}/optim/adam.py"),
    frame("step", 238, f"{TORCH}/optim/adam.py"),
    frame("wrapper", 533, f"{TORCH}/optim/optimizer.py"),
)
MAKING = (
    frame("_apply", 965, f"{TORCH}/nn/modules/module.py"),
    frame("to", 1384, f"{TORCH}/nn/modules/module.py"),
)


class Script(Program):
    """A program that knows which calls it is in, outermost first; `alloc_at` allocates on a line of the innermost."""

    def __init__(self, file: str = "/workspace/train/train.py") -> None:
        super().__init__()
        self.file = file
        self.calls: list[dict[str, Any]] = []
        self.outside: tuple[dict[str, Any], ...] = ()
        self.inside = "<module>"

    @contextmanager
    def call(self, line: int, function: str) -> Iterator[None]:
        """`function` is called at `line` of the function that runs."""
        outer = self.inside
        self.calls.append(frame(outer, line, self.file))
        self.inside = function
        yield
        self.inside = outer
        self.calls.pop()

    def stack(self, line: int, *below: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Innermost first: what torch runs `below`, the line, and the calls around it."""
        return (*below, frame(self.inside, line, self.file), *reversed(self.calls), *self.outside)

    def at(self, line: int, mib: float = 1, *below: dict[str, Any]) -> int:
        """Allocate on a line of the function that runs."""
        return self.alloc(int(mib * MIB), self.stack(line, *below))

    def layer(self, line: int, inside: int, mib: float = 1) -> int:
        """Allocate in a linear layer at line `inside` of a model that is called at `line`."""
        return self.alloc(int(mib * MIB), self.layer_stack(line, inside))

    def layer_stack(self, line: int, inside: int) -> tuple[dict[str, Any], ...]:
        """Of what a linear layer allocates."""
        model = frame("forward", inside, "/workspace/train/model.py")
        return self.stack(line, LINEAR, *CALLED, model, *CALLED)

    def fails(self, line: int, mib: float, *below: dict[str, Any]) -> None:
        """A request that fails on a line of the function that runs."""
        self.oom(int(mib * MIB), self.stack(line, *below))
