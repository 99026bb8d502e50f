"""Memory that only variables keep which are not read again; tensors on the CPU stand for those on a device."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import gc
import inspect
import io
import json
import subprocess
import sys
import threading
import weakref

import pytest

torch = pytest.importorskip("torch", reason="the census asks torch's tensors")
pytestmark = pytest.mark.torch
if sys.version_info >= (3, 14):
    pytest.skip("Python 3.14 keeps references that it does not count", allow_module_level=True)

from oomscope.recording.census.walk import take_census  # noqa: E402

KIB = 1 << 10


def unread(least=1):
    """What the census tells at this moment: bytes by variable."""
    census = take_census(torch, device_type="cpu")
    assert census.walk["complete"], census.walk["notes"]
    assert not census.walk["notes"]
    return {row["holder"].rpartition(": ")[2]: row for row in census.unread if row["bytes"] >= least * KIB}


def sizes(rows):
    return {name: row["bytes"] // KIB for name, row in rows.items()}


def kib(count):
    return torch.zeros(count * KIB // 4)


def net(width=32):
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return next(first + at for at, line in enumerate(lines) if text in line)


@pytest.fixture(autouse=True)
def _clean():
    gc.collect()


def test_what_a_view_without_a_visible_base_shows():
    def rank():
        for _ in range(3):
            points = torch.ones(1024, 4)
            distances = torch.cdist(points, points)  # of this size a view of what only C++ refers to
            if distances._base is None:
                pytest.skip("this torch returns no view")
            nearest = distances.argmin()
            taken = unread(least=1000)
        return taken, nearest

    found, _ = rank()
    assert sizes(found) == {"distances": 4096}


def test_what_a_view_shows_and_a_graph_keeps_as_well():
    def rank():
        points = torch.ones(1024, 4)
        distances = torch.cdist(points, points)
        weight = torch.ones(1, requires_grad=True)
        loss = (distances * weight).sum()
        taken = unread(least=1000)
        loss.backward()
        return taken

    assert rank() == {}


def test_a_checkpoint_that_was_loaded_from():
    def train():
        model = net(64)
        file = io.BytesIO()
        torch.save({"step": 7, "model": model.state_dict(), "ema": model.state_dict()}, file)
        file.seek(0)
        checkpoint = torch.load(file)
        model.load_state_dict(checkpoint["model"])
        step = checkpoint["step"]
        while step < 8:
            model(torch.zeros(4, 64)).sum().backward()
            taken = unread()
            step += 1
        return taken

    found = train()
    assert sizes(found) == {"checkpoint": 16}
    row = found["checkpoint"]
    assert row["place"] == "local"
    assert row["reads"] == []
    assert row["since"] == "before"
    assert row["at"]["name"] == "train"
    assert row["loop"] == line_of(train, "while step < 8")
    assert row["tensors"] == 4


def test_a_number_of_the_checkpoint_that_is_read_later_is_not_its_weights():
    def train():
        checkpoint = {"epoch": 3, "model": {"weight": kib(64)}}
        found = unread()
        print(checkpoint["epoch"])
        return found

    found = train()
    assert sizes(found) == {"checkpoint": 64}
    assert found["checkpoint"]["reads"] == ["['epoch']"]


def test_a_part_of_an_output_whose_class_has_defaults_is_not_all_of_it():
    @dataclasses.dataclass
    class Output(collections.OrderedDict):
        sequences: torch.Tensor | None = None
        cache: torch.Tensor | None = None

        def __post_init__(self):
            self["sequences"], self["cache"] = self.sequences, self.cache

    def main():
        output = Output(kib(16), kib(64))
        found = unread()
        print(output.sequences)
        return found

    found = main()
    assert sizes(found) == {"output": 64}
    assert found["output"]["reads"] == [".sequences"]


@pytest.mark.parametrize("steps", [1, 3])
def test_what_a_loop_comes_back_to_is_read(steps):
    def train():
        teacher, best = net(64), {"model": kib(64)}
        found = []
        for step in range(steps):
            found.append(unread())
            if step % 100 == 99:
                teacher(torch.zeros(1, 64))
        net(64).load_state_dict({}, strict=False)
        return found, best["model"]

    found, _ = train()
    assert all(not sizes(one) for one in found)


@pytest.mark.parametrize("go_through", [lambda kept: kept, enumerate, lambda kept: zip(kept, kept, strict=True)])
def test_what_a_loop_goes_through_is_read_by_its_iterator(go_through):
    def run():
        kept = [kib(64) for _ in range(4)]
        for number, _ in enumerate(go_through(kept)):
            if number == 1:
                return unread()
        return None

    assert "kept" not in run()

    def over():
        kept = [kib(64) for _ in range(4)]
        for _ in go_through(kept):
            pass
        del _
        return unread()

    assert sizes(over())["kept"] == 256


def test_what_a_handler_may_read_is_read():
    def train():
        spare = kib(64)
        try:
            return unread()
        except ValueError:
            return spare

    assert not sizes(train())


def test_an_object_of_which_one_number_is_read_later():
    class Finder:
        def __init__(self, model):
            self.model = model
            self.optimizer = torch.optim.Adam(model.parameters())
            self.first = copy.deepcopy(model.state_dict())
            self.best_loss = None

        def run(self):
            self.model(torch.zeros(4, 64)).sum().backward()
            self.optimizer.step()
            self.best_loss = 3

    def main():
        model = net(64)
        trial = copy.deepcopy(model)
        finder = Finder(trial)
        finder.run()
        del trial
        model(torch.zeros(4, 64)).sum().backward()
        found = unread()
        print(finder.best_loss, model)
        return found

    found = main()
    # Parameters, gradients, two moments and the first state: five copies of 16.5 KiB.
    assert sizes(found) == {"finder": 82}
    assert found["finder"]["reads"] == [".best_loss"]


def test_a_property_or_a_method_may_read_everything():
    class Finder:
        def __init__(self):
            self.state = kib(64)

        @property
        def best(self):
            return self.state.sum()

        def plot(self):
            return self.state

    def with_property():
        finder = Finder()
        found = unread()
        print(finder.best)
        return found

    def with_method():
        finder = Finder()
        found = unread()
        finder.plot()
        return found

    assert not sizes(with_property())
    assert not sizes(with_method())


def frames_of(count):
    points = kib(64)
    for number in range(count):
        yield number, points[number]


def test_a_generator_that_is_suspended_for_good():
    def main():
        frames = frames_of(3)
        next(frames)
        return unread()

    assert sizes(main()) == {"frames": 64}


def while_it_waits(values):
    """What is unread after a generator's first value; it goes on afterwards."""
    for _ in values:
        break
    found = unread()
    next(values)
    return found


def scaled(points):
    for point in points:
        large = point * torch.ones(64 * KIB // 4)
        yield large.sum()
        point.zero_()


def test_what_a_generator_that_waits_will_not_read_again():
    def main():
        return while_it_waits(scaled(iter([torch.ones(1), torch.ones(1)])))

    (name, row) = next(iter(main().items()))
    assert (name, row["bytes"] // KIB, row["place"]) == ("large", 64, "suspended")
    assert row["at"]["name"] == "scaled"


def test_a_second_look_at_a_generator_that_waits_tells_the_same():
    """The first look may leave a copy of its variables behind, which refers to them as well."""

    def main():
        values = scaled(iter([torch.ones(1), torch.ones(1)]))
        next(values)
        found = unread(), unread()
        next(values)
        return found

    first, second = main()
    assert sizes(first) == sizes(second) == {"large": 64}


def doubled(points):
    for point in points:
        kept = point.repeat(64 * KIB // 4)
        yield kept.sum()
        print(kept.mean())


def test_what_a_generator_that_waits_will_read_when_it_goes_on():
    def main():
        return while_it_waits(doubled(iter([torch.ones(1), torch.ones(1)])))

    assert main() == {}


def test_what_a_generators_loop_goes_through_is_read_whatever_becomes_of_its_name():
    def rows(points):
        for point in points:
            yield point.sum()

    def main():
        return while_it_waits(rows([kib(64), kib(64)]))

    assert main() == {}


def test_a_generator_that_a_loop_runs_through():
    def main():
        frames = frames_of(3)
        for _ in frames:
            found = unread()
        return found

    assert not sizes(main())


def test_what_an_argument_keeps_is_the_callees():
    def train(model, rows):
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows), batch_size=4)
        found = []
        for (x,) in loader:
            model(x)
            if not found:
                found.append(unread(least=2))  # the batch itself is 1 KiB
        return found[0]

    def main():
        rows = torch.zeros(512, 64)
        return train(net(64), rows)

    assert not sizes(main())


def test_what_waits_on_the_stack_of_a_call_is_used():
    def later(first, second):
        return first, second

    def main():
        rows = kib(64)
        return later(rows, unread())[1]

    assert not sizes(main())


def test_a_variable_that_a_function_shares():
    def main():
        rows = kib(64)

        def use():
            return rows.sum()

        found = unread()
        return found, use

    found, _ = main()
    assert not sizes(found)


def test_a_variable_that_only_a_function_shares_which_is_not_called_again():
    def main():
        rows = kib(64)

        def use():
            return rows.sum()

        use()
        return unread()

    assert sizes(main()) == {"use": 64} or sizes(main()) == {"rows": 64}


def test_parameters_that_another_optimizer_goes_on_with():
    def pretrain(encoder):
        decoder = net(64)
        optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
        decoder(encoder(torch.zeros(4, 64))).sum().backward()
        optimizer.step()
        return optimizer

    def main():
        encoder = torch.nn.Linear(64, 64)
        old = pretrain(encoder)
        optimizer = torch.optim.SGD(encoder.parameters(), lr=1.0)
        found = unread()
        optimizer.step()
        del old
        return found

    # The decoder with its gradients and moments, and the moments of the encoder; not the encoder nor its gradients.
    assert sizes(main()) == {"old": 4 * 16 + 2 * 16 + 2}


def test_a_graph_that_goes_on_without_its_variables():
    def main():
        model = net(64)
        hidden = model[0](torch.zeros(512, 64)).sin()
        loss = model[2](hidden).sum()
        del model
        found = unread()
        loss.backward()
        return found

    assert not sizes(main())


def test_the_last_pass_is_written_again():
    def main():
        for _ in range(2):
            found = unread()
            rows = kib(64)
            rows.sum()
        return found

    found = main()
    assert sizes(found) == {"rows": 64}
    assert found["rows"]["since"] == "pass"


def test_the_loop_before_which_a_variable_can_go():
    """The outermost one of its function that does not write it: before it, and not within."""

    def main():
        first = kib(64)
        first.sum()
        for _ in range(2):  # outer
            second = kib(32)
            second.sum()
            for _ in range(2):  # inner
                third = kib(16)
                third.sum()
                found = unread()
        return found

    found = main()
    assert sizes(found) == {"first": 64, "second": 32, "third": 16}
    loops = [line_of(main, "# outer"), line_of(main, "# inner"), None]
    assert [found[name]["loop"] for name in ("first", "second", "third")] == loops


def test_an_outer_call_waits_for_a_loop_that_it_has_called():
    def fit(model):
        found = []
        for _ in range(2):
            found.append(unread())
            model(torch.zeros(4, 64))
        return found[0]

    def main():
        for fold in range(2):
            first = kib(64)
            first.sum()
            second = kib(32)
            found = fit(net(64))
            print(second, fold)
        return found

    def outer():
        before = kib(16)
        print(before)
        return main()

    found = outer()
    assert sizes(found) == {"first": 64, "before": 16}
    assert found["first"]["since"] == "between"
    assert found["before"]["since"] == "before"


def test_a_handler_that_jumps_back_is_no_loop():
    def main():
        with contextlib.suppress(ValueError):
            rows = kib(64)
            rows.sum()
        return unread()

    found = main()
    assert sizes(found) == {"rows": 64}
    assert found["rows"]["since"] is None


def test_the_layers_of_a_module_are_no_loop():
    class Asks(torch.nn.Module):
        def forward(self, x):
            self.found = unread()
            return x

    def main():
        rows = kib(64)
        asks = Asks()
        torch.nn.Sequential(asks, torch.nn.ReLU())(rows[:2].clone())
        return asks.found

    found = main()
    assert sizes(found) == {"rows": 64}
    assert found["rows"]["since"] is None


def test_what_a_view_looks_at():
    def main():
        points = (kib(64) + 1).view(-1, 4)
        points.sum()
        return unread()

    assert sizes(main()) == {"points": 64}


def test_what_something_beside_python_shares():
    def main():
        rows = kib(64)
        capsule = torch.utils.dlpack.to_dlpack(rows)
        found = unread()
        return found, capsule

    assert not sizes(main()[0])


def test_a_call_that_waits_for_its_time():
    def watch(rows):
        timer = threading.Timer(3600, print, args=("late", rows))
        timer.daemon = True
        timer.start()
        return timer

    def main():
        timer = watch(kib(64))
        census = take_census(torch, device_type="cpu")
        timer.cancel()
        return census

    row = max(main().holders, key=lambda one: one["bytes"])
    assert row["holder"] == "Timer(print).args"
    assert row["place"] == "deferred"
    assert row["path"] == ["Timer(print).args[1]"]


def test_a_call_at_the_end_of_an_object():
    class Session:
        pass

    def main(session):
        weakref.finalize(session, print, kib(64))
        return take_census(torch, device_type="cpu")

    row = max(main(Session()).holders, key=lambda one: one["bytes"])
    assert row["place"] == "deferred"
    assert row["holder"].startswith("finalize(print)")


def test_looking_twice_keeps_nothing_alive():
    rows = kib(64)
    seen = weakref.ref(rows)
    unread()
    unread()
    del rows
    assert seen() is None


def test_locals_may_read_everything():
    def main():
        rows = kib(64)
        found = unread()
        return found, locals()["rows"]

    assert not sizes(main()[0])


def test_two_variables_that_keep_the_same():
    def train(state):
        return unread()

    def main():
        state = {"weight": kib(64)}
        return train(state)

    found = main()
    assert len(found) == 1
    (row,) = found.values()
    assert row["bytes"] == 64 * KIB
    assert len(row["others"]) == 1


def test_gradients_from_before_their_parameters_were_frozen():
    tower, head = net(64), net(64)
    (tower(torch.zeros(4, 64)).sum() + head(torch.zeros(4, 64)).sum()).backward()
    tower.requires_grad_(False)
    census = take_census(torch, device_type="cpu")
    frozen = [row for row in census.unread if row["place"] == "frozen"]
    bytes_ = sum(one.numel() * 4 for one in tower.parameters())
    assert [(row["holder"], row["bytes"]) for row in frozen] == [("gradients of tower", bytes_)]
    assert sum(row["bytes"] for row in census.tensors if row["unread"] == "gradients of tower") == bytes_
    tower.zero_grad()
    assert not [row for row in take_census(torch, device_type="cpu").unread if row["place"] == "frozen"]
    assert head[0].weight.grad is not None


STAGES = """
import json
import torch
from oomscope.recording.census.walk import take_census

class Pipeline:
    def __init__(self):
        self.tower, self.head = torch.nn.Linear(64, 64), torch.nn.Linear(64, 1)
        self.optimizers = {}

    def step(self, name, module):
        optimizer = self.optimizers.setdefault(name, torch.optim.Adam(module.parameters()))
        module(torch.ones(4, 64)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    def fit(self):
        self.step("tower", self.tower)
        for _ in range(ROUNDS):
            self.tower.requires_grad_(False)
            self.step("head", self.head)
            look()
        return len(self.optimizers), self.tower, self.head

def look():
    rows = take_census(torch, device_type="cpu").unread
    print(json.dumps([(row["holder"], row["bytes"]) for row in rows if row["place"] == "frozen"]))

if __name__ == "__main__":
    Pipeline().fit()
"""


@pytest.mark.parametrize(("rounds", "told"), [(False, True), (True, False)])
def test_the_state_of_an_optimizer_whose_parameters_are_frozen(tmp_path, rounds, told):
    text = STAGES.replace("range(ROUNDS)", "range(1)")
    if not rounds:  # the line that freezes is not run again
        text = text.replace("        for _ in range(1):\n", "        if True:\n")
    script = tmp_path / "stages.py"
    script.write_text(text)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    bytes_ = 2 * (64 * 64 + 64) * 4  # two moments; the count of steps stays on the CPU of a real device
    found = json.loads(done.stdout)
    assert [holder for holder, _ in found] == (["optimizer state of self.tower"] if told else []), done.stderr
    assert not told or bytes_ <= found[0][1] <= bytes_ + 8


def test_what_a_graph_keeps_of_a_call_that_has_ended():
    def look(model):
        hidden = model[0](torch.zeros(512, 64))  # saved by `sin`, and an object of Python's still
        return hidden.sin()

    def main():
        model = net(64)
        shown = look(model)
        shown.mean()
        found = unread()
        model(torch.zeros(4, 64))
        return found

    assert sizes(main())["shown"] == 3 * 128  # with its input


class Index:
    def __init__(self, vectors):
        self.vectors = vectors


def wide(rows=256):
    """A model whose hidden layer is saved for backward, and a batch: 256 KiB of each in `rows` rows."""
    return torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Sigmoid(), torch.nn.Linear(256, 4)), kib(rows).view(
        rows, 256
    )


def graphs(rows):
    return {name: row["bytes"] // KIB for name, row in rows.items() if row["place"] == "graph"}


def test_a_graph_of_which_code_without_gradients_reads_the_values_alone():
    @torch.no_grad()
    def search(index, queries):
        taken = unread(least=100)
        return taken, queries @ index.vectors.t()

    def build(model, rows):
        return Index(model(rows))

    model, rows = wide()
    for _ in range(2):
        index = build(model, rows)
        found, _ = search(index, torch.ones(1, 4))
    assert graphs(found) == {"index.vectors": 256}
    (row,) = (row for row in found.values() if row["place"] == "graph")
    assert row["at"]["name"].endswith("values_alone")


def test_the_same_within_a_block():
    model, rows = wide()
    vectors = model(rows)
    with torch.inference_mode():
        found = unread(least=100)
        best = vectors.argmax()
    assert graphs(found) == {"vectors": 256}
    model.zero_grad()
    assert rows.numel() > best


def test_a_graph_that_a_later_backward_goes_through():
    @torch.no_grad()
    def accuracy(outputs):
        return unread(least=100), outputs.argmax()

    model, rows = wide()
    outputs = model(rows)
    found, _ = accuracy(outputs)
    outputs.sum().backward()
    assert graphs(found) == {}
    outputs = model(rows)
    with torch.no_grad():
        found = unread(least=100)
        print(outputs.argmax())
    outputs.sum().backward()
    assert graphs(found) == {}


@pytest.mark.parametrize("again", [torch.enable_grad, lambda: torch.set_grad_enabled(True)])
def test_a_graph_that_code_reads_which_records_gradients_again(again):
    @again()
    def attack(outputs):
        found = unread(least=100)
        outputs.sum().backward()
        return found

    @torch.no_grad()
    def evaluate(outputs):
        return attack(outputs)

    model, rows = wide()
    assert graphs(evaluate(model(rows))) == {}


def test_a_mode_that_leaves_gradients_on():
    @torch.inference_mode(False)
    def attack(outputs):
        found = unread(least=100)
        outputs.sum().backward()
        return found

    model, rows = wide()
    assert graphs(attack(model(rows))) == {}


def test_a_graph_that_something_else_keeps_for_later():
    @torch.no_grad()
    def rank(outputs):
        return unread(least=100), outputs.argmax()

    model, rows = wide()
    outputs = model(rows)
    losses = [outputs.sum()]
    found, _ = rank(outputs)
    losses[0].backward()
    assert graphs(found) == {}


def test_a_view_without_gradients_shows_values_alone():
    @torch.no_grad()
    def rank(outputs, shown):
        shown.append(outputs.t())
        return unread(least=100), outputs.argmax()

    model, rows = wide()
    outputs, shown = model(rows), []
    found, _ = rank(outputs, shown)
    assert graphs(found) == {"outputs": 256}
    model.zero_grad()
    assert shown[0].numel() == 4 * len(rows)


def test_what_else_refers_to_it_has_to_go_as_well():
    def main():
        optimizer = {"state": kib(64)}
        scheduler = [optimizer]
        use = len(scheduler) + len(optimizer)
        return unread(), use

    found, _ = main()
    (row,) = found.values()
    named = {row["holder"].rpartition(": ")[2], *(one.rpartition(": ")[2] for one in row["others"])}
    assert named == {"optimizer", "scheduler"}
