"""A small training program whose tensors are known, run through the model of the allocator at any shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from oomscope.analysis.study import DeviceStudy, study_device
from oomscope.model import Snapshot
from tests import builders
from tests.whatif.recorder import Recorder

TORCH = "/venv/lib/python3.12/site-packages/torch"
BEGIN_US = 1_700_000_000_000_000
ENGINE = [builders.frame("torch::autograd::Engine::thread_main", 0, "??")]
TRAIN = builders.frame("train", 20, "/workspace/train/train.py")


def load(line: int) -> list[builders.Dict]:
    """A parameter, made when the model is moved to the device."""
    return [
        builders.frame("convert", 1355, f"{TORCH}/nn/modules/module.py"),
        builders.frame("_apply", 930, f"{TORCH}/nn/modules/module.py"),
        builders.frame("_apply", 930 - line % 2, f"{TORCH}/nn/modules/module.py"),
        builders.frame("to", 1369, f"{TORCH}/nn/modules/module.py"),
        builders.frame("main", 10, "/workspace/train/train.py"),
    ]


def forward(name: str, line: int, block: str = "") -> list[builders.Dict]:
    """What a line of the model's forward makes, in one of its blocks if `block` names one."""
    inner = [builders.frame(name, line, "/workspace/train/model.py")]
    if block:
        inner += [builders.frame("_call_impl", 1787, f"{TORCH}/nn/modules/module.py")]
        inner += [builders.frame("forward", 90, "/workspace/train/model.py")]
    return [*inner, builders.frame("_call_impl", 1787, f"{TORCH}/nn/modules/module.py"), TRAIN]


def linear(line: int) -> list[builders.Dict]:
    """What a linear layer makes that a line of a block calls."""
    layer = builders.frame("forward", 134, f"{TORCH}/nn/modules/linear.py")
    return [
        layer,
        builders.frame("_call_impl", 1787, f"{TORCH}/nn/modules/module.py"),
        *forward("forward", line, "block"),
    ]


def attention(line: int) -> list[builders.Dict]:
    """What a function called attention makes that a block's forward calls."""
    return [builders.frame("attention", line, "/workspace/train/model.py"), *forward("forward", 32, "block")]


def optimizer(line: int, name: str = "_multi_tensor_adamw") -> list[builders.Dict]:
    """What the optimizer makes."""
    return [
        builders.frame(name, line, f"{TORCH}/optim/adamw.py"),
        builders.frame("step", 200, f"{TORCH}/optim/adamw.py"),
        builders.frame("train", 24, "/workspace/train/train.py"),
    ]


class Clocked(Recorder):
    """A recorder whose entries are one microsecond apart."""

    def _note(self, action: str, address: int, size: int, stream: int, frames: object = None) -> None:
        super()._note(action, address, size, stream, frames)
        self.entries[-1]["time_us"] = BEGIN_US + len(self.entries)

    @property
    def now_us(self) -> int:
        """The time of the next entry."""
        return BEGIN_US + len(self.entries) + 1


@dataclass(frozen=True)
class Program:
    """A transformer of `blocks` blocks in float32, trained with AdamW.

    Attributes:
        width: of the hidden state.
        vocabulary: of the loss.
        blocks: how many.
        scores: whether attention writes out its scores, batch × heads × length².
        workspace: bytes of a workspace of every block, by batch; none where that is not among them.
    """

    width: int = 256
    vocabulary: int = 4096
    blocks: int = 3
    heads: int = 4
    scores: bool = True
    workspace: Sequence[tuple[int, int]] = ()

    def weights(self) -> list[int]:
        """Bytes of each parameter."""
        return [self.vocabulary * self.width * 4] + [4 * self.width * self.width * 4, self.width * 4] * self.blocks

    def run(self, shapes: Sequence[tuple[int, int]], conf: str = "", *, noted: bool = False) -> Snapshot:
        """The snapshot of a run with one step at each of `shapes` (batch, length); `noted`: the steps say them."""
        device, names = Clocked(conf), count()
        weights = [self._make(device, names, size, load(row)) for row, size in enumerate(self.weights())]
        state: list[int] = []
        steps = []
        for number, (batch, length) in enumerate(shapes):
            begin = device.now_us
            gradients = self._step(device, names, batch, length)
            state = state or [
                self._make(device, names, size, optimizer(150, "_init_group")) for size in self.weights() for _ in "12"
            ]
            temporary = [self._make(device, names, size, optimizer(620)) for size in self.weights()]
            for name in (*temporary, *gradients):
                device.free(name)
            steps.append(
                {"name": str(number), "begin_us": begin, "end_us": device.now_us - 1,
                 "shape": {"batch": batch, "seq": length}}
            )  # fmt: skip
        assert len(weights) == len(self.weights())
        top = {"oomscope": {"schema_version": 1, "steps": steps}} if noted else {}
        return device.snapshot(**top)

    def _step(self, device: Clocked, names: count[int], batch: int, length: int) -> list[int]:
        hidden, logits = batch * length * self.width * 4, batch * (length - 1) * self.vocabulary * 4
        tokens = self._make(
            device, names, batch * length * 8, [builders.frame("batches", 5, "/workspace/train/data.py")]
        )
        saved = []
        for _ in range(self.blocks):
            saved.append(self._make(device, names, hidden, linear(30)))
            if size := dict(self.workspace).get(batch):
                device.free(self._make(device, names, size, forward("forward", 31, "block")))
            if self.scores:
                scores = batch * self.heads * length * length * 4
                saved.append(self._make(device, names, scores, attention(33)))
                saved.append(self._make(device, names, scores, attention(34)))
            saved.append(self._make(device, names, 4 * hidden, linear(36)))
            saved.append(self._make(device, names, hidden, forward("forward", 37, "block")))
        saved.append(self._make(device, names, logits, forward("forward", 95)))
        saved.append(self._make(device, names, logits, forward("cross_entropy", 97)))
        gradients = []
        flow = self._make(device, names, logits, ENGINE)
        for row, size in enumerate(reversed(self.weights())):
            gradients.append(self._make(device, names, size, ENGINE))
            following = self._make(device, names, hidden, ENGINE)
            device.free(flow)
            flow = following
            for _ in range(len(saved) if row == len(self.weights()) - 1 else min(len(saved), 2)):
                device.free(saved.pop())
        device.free(flow)
        device.free(tokens)
        return gradients

    @staticmethod
    def _make(device: Clocked, names: count[int], size: int, frames: list[builders.Dict]) -> int:
        name = next(names)
        assert device.malloc(name, size, frames=frames)
        return name


def study(snapshot: Snapshot) -> DeviceStudy:
    """The study of the only device."""
    return study_device(snapshot, 0)
