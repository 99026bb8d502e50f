"""What kind of thing a holder is, where it is, and whether the program is done with it."""

from __future__ import annotations

import functools
import gc
import inspect
import queue
import re
import signal
from collections import OrderedDict, defaultdict, deque
from typing import ClassVar

import pytest

torch = pytest.importorskip("torch", reason="the census asks torch's tensors")
pytestmark = pytest.mark.torch

from oomscope.model.recorded_parsing import parse_context  # noqa: E402
from oomscope.recording.census import explaining, garbage  # noqa: E402
from oomscope.recording.census.heap import Deadline, Heap  # noqa: E402
from oomscope.recording.census.holder_rows import HolderRow  # noqa: E402
from oomscope.recording.census.holding import Holding  # noqa: E402
from oomscope.recording.census.walk import take_census  # noqa: E402

HERE = __file__


class Engine:
    def __init__(self):
        self.state = [batch(), batch()]

    def close(self, *_):
        self.state.clear()


CACHE = {}
ALONE = {}


def batch(rows=64):
    return torch.randn(rows, 512)


@pytest.fixture
def holders():
    """All holders, by the words of each."""

    def take():
        census = take_census(torch, device_type="cpu")
        assert census.walk["complete"], census.walk["notes"]
        found = {row["holder"]: row for row in census.holders if row["holder"]}
        assert parse_context({"holders": census.holders}).malformed == 0
        return found

    gc.collect()
    return take


def line_of(text):
    lines, first = inspect.getsourcelines(inspect.currentframe().f_back.f_code)
    return first + next(number for number, line in enumerate(lines) if text in line)


@pytest.mark.parametrize(
    ("make", "kind", "length"),
    [
        (lambda: [batch(), batch()], "list", 2),
        (lambda: {"a": batch(), "b": batch()}, "dict", 2),
        (lambda: OrderedDict(a=batch(), b=batch()), "dict", 2),
        (lambda: defaultdict(list, a=batch(), b=batch()), "dict", 2),
        (lambda: {batch(), batch(), batch()}, "set", 3),
        (lambda: frozenset({batch(), batch()}), "set", 2),
        (lambda: (batch(), batch()), "collection", 2),
        (lambda: deque([batch(), batch()]), "deque", 2),
    ],
)
def test_collections_are_told_apart(holders, make, kind, length):
    def train():
        kept = make()
        found = holders()
        return kept, found

    _, found = train()
    row = found["train: kept"]
    assert (row["kind"], row["length"], row["maxlen"]) == (kind, length, None)
    assert (row["place"], row["finished"]) == ("local", False)
    assert row["path"]
    assert all(way.startswith("train: kept") for way in row["path"])


@pytest.mark.parametrize(
    ("keep", "kind"),
    [(lambda node: {node: "layer"}, "dict"), (lambda node: [node], "list"), (lambda node: {"layer": node}, "dict")],
)
def test_nodes_of_the_autograd_graph_are_held_as_tensors_are(holders, keep, kind):
    def train():
        result = (batch().requires_grad_() ** 2).exp()
        kept = keep(result.grad_fn)
        del result
        found = holders()
        return kept, found

    _, found = train()
    row = found["train: kept"]
    assert (row["kind"], row["place"]) == (kind, "local")
    assert row["retained"] == 2 * 64 * 512 * 4
    assert row["nodes"] == 3


def test_no_code_of_a_class_runs_when_it_is_asked_whether_it_is_a_node(holders):
    class Nosy(type):
        def __getattr__(cls, name):
            raise AssertionError(name)

    class Thing(metaclass=Nosy):
        pass

    def train():
        thing = Thing()
        kept = [batch()]
        found = holders()
        return thing, kept, found

    assert "train: kept" in train()[-1]


@pytest.mark.parametrize("bind", [lambda engine: engine.close, lambda engine: functools.partial(Engine.close, engine)])
def test_a_call_that_only_c_knows_is_named_by_its_function(holders, bind):
    engine = Engine()
    before = signal.signal(signal.SIGTERM, bind(engine))
    del engine
    try:
        found = holders()
    finally:
        signal.signal(signal.SIGTERM, before)
    (name,) = (name for name in found if name.startswith("Engine.close"))
    assert re.fullmatch(r"Engine\.close \(a (method|partial) that nothing visible holds\)\S*", name)


def test_a_deque_that_drops_its_oldest_items_says_how_many_it_keeps(holders):
    def train():
        window = deque((batch() for _ in range(9)), maxlen=4)
        found = holders()
        return window, found

    _, found = train()
    assert (found["train: window"]["length"], found["train: window"]["maxlen"]) == (4, 4)


def test_a_length_is_the_collections_own(holders):
    class Odd(list):
        def __len__(self):
            raise RuntimeError("woken")

    def train():
        kept = Odd([batch(), batch(), batch()])
        found = holders()
        return kept, found

    assert train()[1]["train: kept"]["length"] == 3


def test_where_the_code_is_that_can_let_go(holders):
    def train():
        losses = [batch() for _ in range(3)]
        found = holders()  # here
        return losses, found

    row = train()[1]["train: losses"]
    assert row["at"] == {"filename": HERE, "line": line_of("# here"), "name": "train"}


def test_globals_attributes_and_class_attributes(holders):
    class Metric:
        best: ClassVar = batch(100)

    def train():
        metric = Metric()
        metric.last = batch(90)
        metric.outputs = [batch(), batch()]
        found = holders()
        return metric, found

    CACHE["features"] = [batch(80), batch(80)]
    globals()["SINGLE"] = batch(70)
    try:
        _, found = train()
    finally:
        CACHE.clear()
        del globals()["SINGLE"]
    told = {words.rpartition(".")[2] if "Metric" in words else words: row for words, row in found.items()}
    kinds = {words: (row["kind"], row["place"]) for words, row in told.items()}
    assert kinds["train: metric.last"] == ("attribute", "local")
    assert kinds["train: metric.outputs"] == ("list", "local")
    assert kinds["Metric: best"] == ("attribute", "class")
    assert kinds[f"{__name__}: SINGLE"] == ("global", "global")
    cached = next(kinds[words] for words in kinds if words.startswith(f"{__name__}: CACHE"))
    assert cached in {("dict", "global"), ("list", "global")}


def test_a_closures_variables_are_the_closures_wherever_it_is_kept(holders):
    def make_hook():
        captured, single = [batch(), batch()], batch(200)
        return lambda: (captured, single)

    def train():
        ALONE["hook"] = make_hook()
        return holders()

    try:
        found = train()
    finally:
        ALONE.clear()
    rows = {words.rpartition(" ")[2]: row for words, row in found.items() if "(closure)" in words}
    assert (rows["captured"]["kind"], rows["captured"]["place"]) == ("list", "closure")
    assert (rows["single"]["kind"], rows["single"]["place"]) == ("closure", "closure")
    assert rows["single"]["at"]["name"] == "<lambda>"
    assert rows["single"]["at"]["line"] == make_hook.__code__.co_firstlineno + 2


def attempt():
    hidden = [batch() for _ in range(3)]
    raise ValueError(len(hidden))


def test_exceptions_in_a_list_hold_by_their_tracebacks(holders):
    def retry():
        errors = []
        for _ in range(4):
            try:
                attempt()
            except ValueError as error:
                errors.append(error)
        return holders()

    row = retry()["retry: errors"]
    assert (row["kind"], row["finished"], row["length"]) == ("exception", True, 4)
    assert row["path"][0].startswith("retry: errors[")
    assert ".__traceback__ → attempt: hidden[" in row["path"][0]
    assert len(set(row["path"])) == 3


def test_one_exception_in_a_variable_and_what_it_carries_itself(holders):
    def retry():
        try:
            attempt()
        except ValueError as error:
            kept = error
        other = KeyError("carries it")
        other.batch = batch(300)
        found = holders()
        return kept, other, found

    *_, found = retry()
    assert (found["retry: kept"]["kind"], found["retry: kept"]["finished"]) == ("exception", True)
    assert found["retry: kept"]["at"]["name"] == "retry"
    assert (found["retry: other"]["kind"], found["retry: other"]["finished"]) == ("exception", False)


def test_a_list_with_one_exception_among_much_else_is_a_list(holders):
    def retry():
        kept = [batch() for _ in range(9)]
        try:
            attempt()
        except ValueError as error:
            kept.append(error)
        found = holders()
        return kept, found

    row = retry()[1]["retry: kept"]
    assert (row["kind"], row["finished"]) == ("list", False)


@pytest.mark.parametrize(("raised", "kind"), [(50, "list"), (51, "exception")])
def test_more_than_half_of_the_bytes_say_what_a_row_is_about(raised, kind):
    holding = Holding()
    node = holding.number([])
    row = HolderRow("x", "list", 0, bytes=100, members={node}, raised=raised, ended=raised)
    explaining.explain(holding, row)
    assert (row.kind, row.finished) == (kind, kind == "exception")


def test_the_frame_of_a_call_that_has_ended(holders):
    def call():
        scratch = [batch() for _ in range(3)]
        return inspect.currentframe(), len(scratch)

    def train():
        frame, _ = call()
        found = holders()
        return frame, found

    row = train()[1]["train: frame → call: scratch"]
    assert (row["kind"], row["finished"]) == ("list", True)
    assert row["at"]["name"] == "call"


def test_what_will_go_on_has_not_finished(holders):
    def loader():
        prefetched = [batch() for _ in range(3)]
        yield inspect.currentframe(), len(prefetched)

    def train():
        data = loader()
        frame, _ = next(data)
        found = holders()
        data.close()
        return frame, found

    row = next(row for words, row in train()[1].items() if words.endswith("loader: prefetched"))
    assert row["finished"] is False
    assert (row["kind"], row["at"]["name"]) == ("list", "loader")


def test_a_suspended_coroutine_that_nothing_visible_holds(holders):
    class Hidden:
        """Awaits itself; the coroutine is then only in a ring."""

        def __await__(self):
            yield self

    async def worker(hidden):
        buffers = [batch() for _ in range(3)]
        await hidden
        return buffers

    def start():
        hidden = Hidden()
        hidden.coroutine = worker(hidden)
        hidden.coroutine.send(None)

    gc.disable()
    try:
        start()
        found = holders()
        row = next(row for words, row in found.items() if "worker: buffers" in words)
        assert (row["place"], row["finished"]) == ("suspended", False)
    finally:
        gc.enable()
        gc.collect()


class Node:
    pass


def ring(rows=64):
    one, other = Node(), Node()
    one.partner, other.owner = other, one
    one.activation = batch(rows)
    return one


def only_cycle(found):
    return next(row for row in found.values() if row["kind"] == "cycle")


def test_garbage_is_proven_by_the_counts_of_references(holders):
    gc.disable()
    try:
        for _ in range(5):
            ring()
        row = only_cycle(holders())
        assert gc.collect() >= 10  # nothing was collected by the walk, and all of it is garbage indeed
    finally:
        gc.enable()
    assert (row["place"], row["finished"], row["count"]) == ("cycle", True, 5)
    assert row["path"][0].startswith("reference cycle: Node.")


def test_garbage_that_a_module_is_part_of(holders):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.activations = [batch(), batch()]
            self.linear.register_forward_hook(lambda *_: self.activations.append(batch()))

    gc.disable()
    try:
        Model()
        row = only_cycle(holders())
    finally:
        gc.enable()
        gc.collect()
    assert row["finished"] is True


def test_what_something_invisible_refers_to_is_not_called_garbage(holders):
    """A C extension's reference is in no container; here ctypes makes one."""
    import ctypes

    gc.disable()
    try:
        kept = ring()
        address = id(kept)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        del kept
        row = only_cycle(holders())
        assert row["finished"] is False
        ctypes.pythonapi.Py_DecRef(ctypes.cast(address, ctypes.py_object))
        row = only_cycle(holders())
        assert row["finished"] is True
    finally:
        gc.enable()
        gc.collect()


def test_what_a_call_is_just_being_given_is_not_called_garbage(holders):
    found = {}

    def use(*_values):
        del _values
        found.update(holders())

    gc.disable()
    try:
        # On the stack of the interpreter, where no list or variable shows it.
        [ring(), use()]
    finally:
        gc.enable()
        gc.collect()
    assert all(row["finished"] is not True for row in found.values() if row["kind"] == "cycle")


def test_of_very_many_rings_only_some_are_looked_at(monkeypatch):
    monkeypatch.setattr(garbage, "_MOST_RINGS", 2)
    gc.disable()
    try:
        rings = [ring() for _ in range(4)]
        objects = [item for one in rings for item in (one, one.partner)]
        witness = garbage.Witness()
        heap = Heap(gc.get_objects(), Deadline(60))
        references = garbage.References(heap, [witness], [])
        found = references.garbage([(0, 1), (2, 3), (4, 5), (6, 7)], objects)
        assert set(found) == {0, 2}
        monkeypatch.setattr(garbage, "_MOST_OBJECTS", 3)
        assert set(references.garbage([(0, 1), (2, 3)], objects)) == {0}
        assert set(references.garbage([(0, 1), (2,)], objects)) == {0, 2}
    finally:
        gc.enable()


def test_what_models_and_optimizers_own_keeps_its_category(holders):
    def train():
        model = torch.nn.Linear(64, 64)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.randn(4, 64)).sum().backward()
        optimizer.step()
        found = holders()
        return model, found

    row = train()[1]["optimizer"]
    assert (row["kind"], row["finished"], row["at"], row["path"]) == ("optimizer_state", None, None, [])


def test_ways_through_another_holder_are_left_out(holders):
    def train():
        first = [batch(), batch()]
        second = [*first, batch()]
        found = holders()
        return first, second, found

    found = train()[2]
    for words, row in found.items():
        if words.startswith("train: "):
            assert all(way.startswith(words) for way in row["path"])


def test_the_frames_of_what_is_just_being_raised_count_as_running():
    """A dump made after unwinding tells variables as one made at the OOM would."""

    def fail():
        hidden = [batch() for _ in range(3)]
        raise ValueError(len(hidden))

    try:
        fail()
    except ValueError as error:
        CACHE["last"] = error
        census = take_census(torch, device_type="cpu", error=error)
    finally:
        CACHE.clear()
    row = next(row for row in census.holders if (row["holder"] or "").endswith("hidden"))
    assert row["holder"].endswith("fail: hidden")
    assert (row["kind"], row["place"], row["finished"]) == ("list", "local", False)
    assert row["at"]["name"] == "fail"


def test_what_the_hooks_of_a_tensor_keep_is_not_put_down_to_the_tensor(holders):
    def train():
        weight = torch.nn.Parameter(batch())
        for _ in range(5):
            mask = batch()
            weight.register_hook(lambda gradient, mask=mask: gradient * mask)
        return next(row for row in holders().values() if row["tensors"] >= 4)

    row = train()
    assert row["holder"] == "train: weight._backward_hooks"
    assert row["path"][0].startswith("train: weight._backward_hooks[")


def test_a_bounded_queue_says_how_much_it_takes(holders):
    def serve():
        ready = queue.Queue(maxsize=3)
        for _ in range(3):
            ready.put(batch())
        return next(row for row in holders().values() if row["kind"] == "deque")

    row = serve()
    assert (row["holder"], row["length"], row["maxlen"]) == ("serve: ready.queue", 3, 3)


def test_hooks_and_caches_tell_where_they_are_filled(holders):
    class Monitor:
        def __init__(self):
            self.net = torch.nn.Linear(4, 4)

        def watch(self):
            maps = [batch(), batch()]
            self.net.register_forward_hook(lambda *_: maps.append(batch()))

    @functools.cache
    def phase(step):
        return batch(64 + step)

    monitor = Monitor()
    monitor.watch()
    kept = [phase(step) for step in range(3)]
    del kept
    rows = holders()
    (hooks,) = (row for name, row in rows.items() if "_forward_hooks" in name)
    (cached,) = (row for name, row in rows.items() if "(lru_cache)" in name)
    assert [one["line"] for one in cached["stores"]] == [phase.__wrapped__.__code__.co_firstlineno]
    assert [one["line"] for one in hooks["stores"]] == [Monitor.watch.__code__.co_firstlineno + 2]


class Watch:
    def watch(self, net):
        maps = [batch(), batch()]
        net.register_forward_hook(lambda *_: maps.append(batch()))


def test_a_hook_of_a_class_tells_the_line_that_registers_it(holders):
    net = torch.nn.Linear(4, 4)
    Watch().watch(net)
    (row,) = (row for name, row in holders().items() if "net._forward_hooks" in name)
    assert [one["line"] for one in row["stores"]] == [Watch.watch.__code__.co_firstlineno + 2]
