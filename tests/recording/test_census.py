"""Who holds what, in the programs that leak; tensors on the CPU stand for those on a device."""

from __future__ import annotations

import asyncio
import gc
import weakref
from time import process_time
from typing import ClassVar

import pytest

torch = pytest.importorskip("torch", reason="the census asks torch's tensors")
pytestmark = pytest.mark.torch

from oomscope.recording.census.roots import local_variables  # noqa: E402
from oomscope.recording.census.walk import take_census  # noqa: E402

KIB = 1 << 10
MODULE_CACHE = {}


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(32, 32)

    def forward(self, x):
        return self.linear(x).relu()


class Model(torch.nn.Module):
    def __init__(self, oom=None):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block() for _ in range(3)])
        self.register_buffer("scale", torch.ones(16))
        self.at_end = oom

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        if self.at_end is not None:
            self.at_end()
        return x


class Taken:
    """Takes a census when it is called, as the observer would in the middle of a program."""

    def __init__(self, **options):
        self.options = options
        self.census = None

    def __call__(self):
        self.census = take_census(torch, device_type="cpu", **self.options)
        assert self.census.walk["complete"], self.census.walk["notes"]

    @property
    def first(self):
        """The holder of most bytes."""
        return self.census.holders[0]

    def row(self, tensor):
        address = tensor.untyped_storage().data_ptr()
        return next(row for row in self.census.tensors if row["address"] == address)


@pytest.fixture
def taken():
    gc.collect()
    return Taken()


def batch():
    return torch.randn(64, 32)


def test_a_graph_kept_by_the_sum_of_losses(taken):
    def train():
        model, total_loss = Model(), 0
        for _ in range(20):
            loss = model(batch()).pow(2).mean()
            total_loss = total_loss + loss
        model.at_end = taken
        model(batch())

    train()
    assert taken.first["holder"] == "train: total_loss"
    assert taken.first["kind"] == "graph"
    assert taken.first["nodes"] > 200
    assert taken.first["retained"] > 0.9 * taken.first["bytes"] > 100 * KIB


def test_a_graph_that_a_hidden_state_carries_is_not_put_down_to_the_last_loss(taken):
    def train():
        cell, head = torch.nn.LSTM(32, 32, 2), torch.nn.Linear(32, 8)
        hidden = None
        for _ in range(20):
            output, hidden = cell(batch()[None], hidden)
            loss = head(output).pow(2).mean()
        taken()
        return loss

    train()
    assert taken.first["holder"] == "train: hidden"
    assert taken.first["nodes"] > 100


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_graph_that_gradients_keep(taken):
    def train():
        model = Model()
        for _ in range(20):
            model(batch()).pow(2).mean().backward(create_graph=True)
        taken()
        model.zero_grad(set_to_none=True)

    train()
    assert taken.first["holder"] == "train: model.blocks.*.grad"
    assert taken.first["kind"] == "graph"
    assert taken.first["nodes"] > 100
    assert taken.first["retained"] == taken.first["bytes"]  # what several of them keep is kept by all of them


def test_the_nodes_of_a_chain_are_one_holder(taken):
    def train():
        node = None
        for _ in range(20):
            node = Node(node, {"value": batch()})
        taken()
        return node

    class Node:
        def __init__(self, parent, values):
            self.parent, self.values = parent, values

    train()
    assert taken.first["holder"] == "train: node.*.values"
    assert taken.first["tensors"] >= 18  # but for the newest two, to which fewer steps lead
    assert taken.first["retained"] == taken.first["bytes"]


def test_a_graph_that_a_buffer_keeps(taken):
    def train():
        model = torch.nn.Linear(32, 32)
        model.register_buffer("spread", torch.ones(32))
        for _ in range(20):
            model.spread = 0.9 * model.spread + 0.1 * model(batch()).var(dim=0)
        taken()

    train()
    assert (taken.first["holder"], taken.first["kind"]) == ("train: model.spread", "graph")
    assert taken.first["nodes"] > 60


def test_a_list_of_losses_still_in_the_graph(taken):
    def train():
        model = Model()
        losses = [model(batch()).sum().cpu() for _ in range(20)]
        taken()
        return losses

    train()
    assert taken.first["holder"] == "train: losses"
    assert taken.first["kind"] == "list"


def test_a_list_that_a_hook_fills(taken):
    def train():
        model = Model()
        model.blocks[2].captured = []
        model.blocks[2].register_forward_hook(lambda block, _, output: block.captured.append(output.detach()))
        for _ in range(30):
            model(batch())
        taken()
        return model.blocks[2].captured[7]

    seventh = train()
    assert taken.first["holder"] == "train: model.blocks[2].captured"
    assert taken.first["tensors"] == 30
    assert taken.row(seventh)["holders"] == ["train: model.blocks[2].captured[7]"]


def test_lists_alike_on_every_block_are_one_holder(taken):
    def train():
        model = Model()
        for block in model.blocks:
            block.kept = []
            block.register_forward_hook(lambda block, _, output: block.kept.append(output))
        for _ in range(20):
            model(batch())
        taken()

    train()
    assert taken.first["holder"] == "train: model.blocks[*].kept"
    assert taken.first["count"] == 3
    assert taken.first["tensors"] >= 60


def test_a_closure(taken):
    def make_hook():
        captured = []
        return lambda _module, _input, output: captured.append(output.detach())

    def train():
        model = Model()
        model.blocks[0].register_forward_hook(make_hook())
        for _ in range(30):
            model(batch())
        taken()

    train()
    assert taken.first["holder"].startswith("train: model.blocks[0]._forward_hooks[")
    assert taken.first["holder"].endswith("(closure) captured")


def test_a_global_and_a_class_attribute(taken):
    class Registry:
        seen: ClassVar = []

    MODULE_CACHE["features"] = [batch() for _ in range(40)]
    Registry.seen.extend(batch() for _ in range(30))
    try:
        taken()
    finally:
        MODULE_CACHE.clear()
        Registry.seen.clear()
    named = [holder["holder"] for holder in taken.census.holders[:2]]
    assert named[0] in (f"{__name__}: MODULE_CACHE", f"{__name__}: MODULE_CACHE['features']")
    assert named[1].endswith("Registry: seen")


class Node:
    pass


def test_reference_cycles_are_told_as_one(taken):
    gc.disable()
    try:
        for _ in range(25):
            one, other = Node(), Node()
            one.partner, other.owner = other, one
            one.activation = batch()
        del one, other
        taken()
    finally:
        gc.enable()
        gc.collect()
    assert taken.first["kind"] == "cycle"
    assert taken.first["holder"].startswith("reference cycle: Node.")
    assert taken.first["count"] == 25


def attempt():
    activations = [batch() for _ in range(30)]
    raise torch.OutOfMemoryError(f"CUDA out of memory. {len(activations)}")


def test_the_exception_that_a_retry_is_made_under(taken):
    def retry():
        try:
            attempt()
        except RuntimeError:
            taken()

    retry()
    assert taken.first["holder"] == "the OutOfMemoryError being handled"
    assert taken.first["kind"] == "exception"


def test_an_exception_kept_in_a_variable(taken):
    def retry():
        try:
            attempt()
        except RuntimeError as error:
            kept = error
        taken()
        return kept

    kept = retry()
    assert taken.first["holder"] == "retry: kept"
    frame = kept.__traceback__.tb_next.tb_frame
    held = taken.row(frame.f_locals["activations"][4])
    assert held["holders"] == ["retry: kept.__traceback__ → attempt: activations[4]"]


def test_a_suspended_generator_and_a_coroutine(taken):
    def loader():
        prefetched = [batch() for _ in range(30)]
        yield prefetched[0]

    def train():
        data = loader()
        next(data)
        taken()
        data.close()

    train()
    assert taken.first["holder"] == "train: data → loader: prefetched"

    async def worker(event):
        buffers = [batch() for _ in range(40)]
        await event.wait()
        return buffers

    async def serve():
        event = asyncio.Event()
        task = asyncio.ensure_future(worker(event))
        await asyncio.sleep(0)
        taken()
        event.set()
        await task

    asyncio.run(serve())
    assert taken.first["holder"].endswith("worker: buffers")


def test_attributes_slots_deques_sets_and_dataclasses(taken):
    from collections import deque
    from dataclasses import dataclass

    @dataclass
    class State:
        history: deque

    class Slotted:
        __slots__ = ("state",)

    def train():
        holder = Slotted()
        holder.state = State(deque(batch() for _ in range(20)))
        taken()
        return holder.state.history[3]

    third = train()
    assert taken.first["holder"] == "train: holder.state.history"
    assert taken.row(third)["holders"] == ["train: holder.state.history[3]"]


def test_names_of_parameters_gradients_buffers_and_state(taken):
    def train():
        model = Model()
        optimizer = torch.optim.Adam(model.parameters())
        model(batch()).sum().backward()
        optimizer.step()
        taken()
        return model, optimizer

    model, optimizer = train()
    for name, parameter in model.named_parameters():
        assert (taken.row(parameter)["name"], taken.row(parameter)["category"]) == (f"model.{name}", "parameter")
        assert taken.row(parameter.grad)["name"] == f"model.{name}.grad"
        assert taken.row(parameter.grad)["category"] == "gradient"
        state = taken.row(optimizer.state[parameter]["exp_avg"])
        assert (state["name"], state["category"]) == (f"model.{name}.exp_avg", "optimizer_state")
    assert taken.row(model.scale)["name"] == "model.scale"
    rows = {(row["holder"], row["kind"]): row for row in taken.census.holders}
    assert rows["optimizer", "optimizer_state"]["bytes"] > rows["model", "parameter"]["bytes"]


def test_tied_flat_and_unowned_parameters(taken):
    def train():
        flat = torch.zeros(100)
        layer = torch.nn.Linear(10, 10, bias=False)
        layer.weight = torch.nn.Parameter(flat.view(10, 10))
        layer.again = layer.weight
        layer.other = torch.nn.Parameter(flat[:10])
        free = torch.nn.Parameter(torch.zeros(77))
        free.grad = torch.zeros(77)
        optimizer = torch.optim.SGD([free], lr=0.1)
        taken()
        return layer, free, optimizer

    layer, free, _optimizer = train()
    assert taken.row(layer.weight)["name"] == "layer.weight and 2 more"
    assert taken.row(layer.weight)["shape"] is None
    assert taken.row(free)["name"] == "optimizer.param_groups[0]['params'][0]"
    assert taken.row(free.grad)["category"] == "gradient"


def test_tracked_names_win(taken):
    net = Model()
    taken.options["tracked"] = {"student": net}
    taken()
    assert taken.row(net.blocks[0].linear.weight)["name"] == "student.blocks.0.linear.weight"


def test_the_compilers_modules_name_nothing_that_has_a_name(taken):
    model = Model()
    traced = torch.fx.symbolic_trace(Block())
    traced.again = model.blocks[0].linear
    traced.register_buffer("constant", torch.ones(999))
    taken()
    assert taken.row(model.blocks[0].linear.weight)["name"] == "model.blocks.0.linear.weight"
    assert taken.row(traced.constant)["name"] == "traced.constant"


def test_what_is_saved_for_backward(taken):
    def train():
        model = Model()
        first = batch()
        loss = model(first).sum()
        taken()
        return first, loss

    first, _loss = train()
    row = taken.row(first)
    assert row["category"] == "activation"
    assert row["saved_for"] == "AddmmBackward0 (mat1)"
    assert row["holders"] == ["train: loss", "train: first"]


def test_saved_tensors_that_a_hook_packed_are_not_touched(taken):
    unpacked = []
    weight = torch.randn(32, 32, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: tensor.clone(), lambda tensor: unpacked.append(1) or tensor
    ):
        loss = (batch() @ weight).exp().sum()
    taken()
    assert unpacked == []
    assert taken.census.walk["complete"]
    loss.backward()
    assert unpacked


def test_a_custom_function_that_keeps_tensors_on_its_context(taken):
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.extra = [torch.randn(1000) for _ in range(60)]
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    def train():
        result = Keep.apply(torch.randn(4, requires_grad=True))
        taken()
        return result.grad_fn.extra[5]

    fifth = train()
    assert taken.first["holder"] == "train: result"
    assert taken.row(fifth)["holders"] == ["train: result.extra[5]"]


def test_nothing_that_the_walk_touched_is_kept(taken):
    """With the collector off: a cycle would keep tensors until it runs."""

    class Kept:
        pass

    def train():
        model, kept = Model(), Kept()
        kept.tensor = batch()
        loss = model(kept.tensor).sum()
        taken()
        return weakref.ref(kept), weakref.ref(model), loss.grad_fn.name()

    gc.disable()
    try:
        kept, model, _ = train()
        assert kept() is None
        assert model() is None
    finally:
        gc.enable()


def test_a_look_at_locals_leaves_nothing_in_the_frame():
    import sys

    value = Node()
    ref = weakref.ref(value)
    assert local_variables(sys._getframe())["value"] is value
    del value
    assert ref() is None


def test_locals_that_the_program_holds_are_left_alone():
    import sys

    mine = locals()
    marker = Node()
    local_variables(sys._getframe())
    assert mine["marker"] is marker


def test_a_budget_that_is_spent_leaves_what_is_known():
    model = Model()
    census = take_census(torch, device_type="cpu", seconds=0)
    assert census.walk["complete"] is False
    assert "budget" in census.walk["notes"][0]
    address = model.scale.untyped_storage().data_ptr()
    assert any(row["address"] == address and row["name"] for row in census.tensors)


def test_holders_are_told_where_there_is_no_time_for_what_nobody_reads(monkeypatch):
    from oomscope.recording.census import walk

    def spent(*arguments):
        raise walk.OutOfTime

    monkeypatch.setattr(walk, "find_unread", spent)
    kept = [torch.zeros(50_000)]
    census = take_census(torch, device_type="cpu")
    assert any(row["holder"].endswith(": kept") for row in census.holders if row["holder"])
    assert census.unread == []
    assert census.walk["complete"] is False
    assert census.walk["notes"] == ["variables that are not read again: no time was left to find them"]
    del kept


def test_odd_objects_do_no_harm(taken):
    class Proxy:
        """Says it is a tensor, and fails at everything."""

        @property
        def __class__(self):
            raise RuntimeError("woken")

        def __getattr__(self, name):
            raise RuntimeError("woken")

        def __len__(self):
            raise RuntimeError("woken")

    class Strange(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *_args, **_kwargs):
            raise RuntimeError("a torch function was run")

    def train():
        proxy = Proxy()
        object.__setattr__(proxy, "tensor", batch())
        strange = batch().as_subclass(Strange)
        table = {(1, 2): batch(), proxy: batch(), "x" * 500: batch()}
        taken()
        return proxy, strange, table

    train()
    assert taken.census.walk["complete"]
    fake = torch._subclasses.FakeTensorMode()
    with fake:
        imaginary = torch.zeros(10)
    taken()
    assert taken.census.walk["complete"]
    assert imaginary.shape == (10,)


def test_the_walk_over_half_a_million_objects_is_quick(taken):
    ballast = [{"index": index, "pair": (index, [])} for index in range(150_000)]
    leak = [batch() for _ in range(200)]
    gc.collect()
    began = process_time()
    taken()
    assert process_time() - began < 30  # under 1 s on a quiet machine; a busy one has taken 7
    assert taken.census.walk["objects"] > 500_000
    assert taken.row(leak[5])["holders"][0].endswith("leak[5]")
    assert len(ballast) == 150_000


def test_a_view_tells_how_little_it_shows(taken):
    class Baked:
        def __init__(self, grid):
            self.section = grid[0, :, 1:4]

    baked, whole, halves = Baked(torch.zeros(64, 64, 16)), torch.zeros(64, 64), list(torch.zeros(2, 4096))
    graph = (torch.zeros(64, 64, requires_grad=True) ** 2)[:1]
    taken()
    assert taken.row(baked.section)["visible"] == 64 * 3 * 4
    assert taken.row(whole)["visible"] is None
    assert taken.row(halves[0])["visible"] is None  # both together show all of it
    assert all(row["visible"] is None for row in taken.census.tensors if row["saved_for"])
    del graph


def test_of_which_models_a_call_is_underway(taken):
    class Asking(torch.nn.Linear):
        def forward(self, x):
            taken()
            return super().forward(x)

    def running():
        return {row["holder"]: row["running"] for row in taken.census.holders if row["kind"] == "parameter"}

    def predict():
        encoder, decoder = torch.nn.Linear(32, 32), torch.nn.Sequential(torch.nn.Linear(32, 32), Asking(32, 32))
        found = decoder(encoder(batch()))
        assert running() == {"encoder": False, "decoder": True}
        taken()
        assert running() == {"encoder": None, "decoder": None}
        return found

    predict()
