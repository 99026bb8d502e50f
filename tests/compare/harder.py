"""Edits that are meant to mislead the matching of lines; the truth of each was written before it was tried.

Each is a pair of recordings as rows ``(stack, sizes in MiB)``, and what is which line: ``{before: after}`` by file,
function and line; lines that are not named have no counterpart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oomscope.model import Snapshot
from tests.analysis.programs import MIB, TORCH, Program
from tests.builders import frame

Where = tuple[str, str, int]
Rows = list[tuple[tuple[Where, ...], list[int]]]
LINEAR, NORM, SOFTMAX, CAT, EMPTY = "linear", "layer_norm", "softmax", "cat", "empty"


@dataclass(frozen=True)
class Edit:
    """Rows of either recording: an operation of torch, the frames outwards, and sizes; `same` is the truth."""

    before: list[tuple[str, tuple[Where, ...], list[int]]]
    after: list[tuple[str, tuple[Where, ...], list[int]]]
    same: dict[Where, Where]


def recording(rows: list[tuple[str, tuple[Where, ...], list[int]]]) -> Snapshot:
    """A recording in which all `rows` stay alive."""
    program = Program()
    for operation, frames, sizes in rows:
        stack: list[dict[str, Any]] = [frame(operation, 50, f"{TORCH}/nn/functional.py")]
        stack += [frame(function, line, file) for file, function, line in frames]
        for size in sizes:
            program.alloc(size * MIB, tuple(stack))
    return program.snapshot()


MAIN = ("/w/train.py", "main", 90)
MAIN_2 = ("/w/train.py", "main", 95)


def _m(line: int, function: str = "forward", file: str = "/w/model.py") -> Where:
    return (file, function, line)


DELETED = Edit(
    [(LINEAR, (_m(10), MAIN), [4]), (LINEAR, (_m(11), MAIN), [4]), (NORM, (_m(14), MAIN), [2])],
    [(LINEAR, (_m(10), MAIN), [4]), (NORM, (_m(13), MAIN), [2])],
    {_m(10): _m(10), _m(14): _m(13), MAIN: MAIN},
)
"""The second of two alike lines was deleted; from the stacks alone it may as well have been the first."""

EDITS = {
    "a line added above whose number another had": Edit(
        [(LINEAR, (_m(10), MAIN), [4]), (NORM, (_m(11), MAIN), [2])],
        [(SOFTMAX, (_m(10), MAIN), [9]), (LINEAR, (_m(11), MAIN), [4]), (NORM, (_m(12), MAIN), [2])],
        {_m(10): _m(11), _m(11): _m(12), MAIN: MAIN},
    ),
    "two files of one name in two folders": Edit(
        [
            (LINEAR, (_m(10, "encode", "/a/enc/model.py"), MAIN), [4]),
            (NORM, (_m(10, "decode", "/a/dec/model.py"), MAIN), [2]),
        ],
        [
            (LINEAR, (_m(12, "encode", "/b/src/enc/model.py"), MAIN), [4]),
            (NORM, (_m(12, "decode", "/b/src/dec/model.py"), MAIN), [2]),
        ],
        {
            _m(10, "encode", "/a/enc/model.py"): _m(12, "encode", "/b/src/enc/model.py"),
            _m(10, "decode", "/a/dec/model.py"): _m(12, "decode", "/b/src/dec/model.py"),
            MAIN: MAIN,
        },
    ),
    "a function of a common name in two classes of two files, both files renamed": Edit(
        [
            (LINEAR, (_m(10, "forward", "/w/mlp.py"), _m(5, "run_mlp", "/w/net.py"), MAIN), [4]),
            (SOFTMAX, (_m(20, "forward", "/w/attn.py"), _m(9, "run_attention", "/w/net.py"), MAIN), [6]),
        ],
        [
            (SOFTMAX, (_m(22, "forward", "/w/mixer.py"), _m(9, "run_attention", "/w/net.py"), MAIN), [6]),
            (LINEAR, (_m(11, "forward", "/w/dense.py"), _m(5, "run_mlp", "/w/net.py"), MAIN), [4]),
        ],
        {
            _m(10, "forward", "/w/mlp.py"): _m(11, "forward", "/w/dense.py"),
            _m(20, "forward", "/w/attn.py"): _m(22, "forward", "/w/mixer.py"),
            _m(5, "run_mlp", "/w/net.py"): _m(5, "run_mlp", "/w/net.py"),
            _m(9, "run_attention", "/w/net.py"): _m(9, "run_attention", "/w/net.py"),
            MAIN: MAIN,
        },
    ),
    "a function moved to another file that stays": Edit(
        [(LINEAR, (_m(10, "head", "/w/model.py"), MAIN), [4]), (NORM, (_m(30, "tail", "/w/util.py"), MAIN), [2])],
        [(LINEAR, (_m(50, "head", "/w/util.py"), MAIN), [4]), (NORM, (_m(30, "tail", "/w/util.py"), MAIN), [2])],
        {
            _m(10, "head", "/w/model.py"): _m(50, "head", "/w/util.py"),
            _m(30, "tail", "/w/util.py"): _m(30, "tail", "/w/util.py"),
            MAIN: MAIN,
        },
    ),
    "an unrelated function instead of another": Edit(
        [(LINEAR, (_m(10, "project", "/w/model.py"), _m(5, "encoder", "/w/net.py"), MAIN), [4])],
        [(CAT, (_m(70, "gather_logs", "/w/logs.py"), _m(9, "validate", "/w/eval.py"), MAIN), [4])],
        {MAIN: MAIN},
    ),
    "a caller that moved": Edit(
        [(LINEAR, (_m(10), MAIN), [4])], [(LINEAR, (_m(10), MAIN_2), [4])], {_m(10): _m(10), MAIN: MAIN_2}
    ),
    "two callers of one line, one gone": Edit(
        [(LINEAR, (_m(10), MAIN), [4]), (LINEAR, (_m(10), ("/w/train.py", "evaluate", 40), MAIN), [4])],
        [(LINEAR, (_m(10), MAIN), [4])],
        {_m(10): _m(10), MAIN: MAIN},
    ),
    "two lines swapped": Edit(
        [(LINEAR, (_m(10), MAIN), [4]), (NORM, (_m(11), MAIN), [2])],
        [(NORM, (_m(10), MAIN), [2]), (LINEAR, (_m(11), MAIN), [4])],
        {_m(10): _m(11), _m(11): _m(10), MAIN: MAIN},
    ),
    "a cell of a notebook that was run again": Edit(
        [(LINEAR, (_m(3, "step", "/tmp/ipykernel_17/11.py"), _m(1, "<module>", "/tmp/ipykernel_17/22.py")), [4])],
        [(LINEAR, (_m(3, "step", "/tmp/ipykernel_99/33.py"), _m(1, "<module>", "/tmp/ipykernel_99/44.py")), [4])],
        {
            _m(3, "step", "/tmp/ipykernel_17/11.py"): _m(3, "step", "/tmp/ipykernel_99/33.py"),
            _m(1, "<module>", "/tmp/ipykernel_17/22.py"): _m(1, "<module>", "/tmp/ipykernel_99/44.py"),
        },
    ),
    "a library under another Python, its lines moved by a release": Edit(
        [(LINEAR, (_m(100, "forward", "/a/lib/python3.10/site-packages/transformers/models/llama.py"), MAIN), [4])],
        [(LINEAR, (_m(104, "forward", "/opt/b/lib/python3.12/site-packages/transformers/models/llama.py"), MAIN), [4])],
        {
            _m(100, "forward", "/a/lib/python3.10/site-packages/transformers/models/llama.py"): _m(
                104, "forward", "/opt/b/lib/python3.12/site-packages/transformers/models/llama.py"
            ),
            MAIN: MAIN,
        },
    ),
    "one of three of a kind removed, all others moved by seven": Edit(
        [(LINEAR, (_m(line), MAIN), [4]) for line in (10, 20, 30)] + [(NORM, (_m(40), MAIN), [1])],
        [(LINEAR, (_m(line), MAIN), [4]) for line in (17, 37)] + [(NORM, (_m(47), MAIN), [1])],
        {_m(10): _m(17), _m(30): _m(37), _m(40): _m(47), MAIN: MAIN},
    ),
}
