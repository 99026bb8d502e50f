"""Every thread's stack at the failure, named; and where backward was."""

from __future__ import annotations

import pickle
import sys
import threading

import pytest

torch = pytest.importorskip("torch", reason="backward is torch's")
pytestmark = pytest.mark.torch

import oomscope  # noqa: E402
from oomscope.model.recorded_parsing import parse_context  # noqa: E402
from oomscope.recording import backward, exceptions, stacks  # noqa: E402
from tests.recording.fake import FakeBackend  # noqa: E402

HERE = __file__


def serve_requests(here, done):
    here.release()
    done.wait(60)


@pytest.fixture
def servers():
    """Threads that are in `serve_requests`; as many as asked for."""
    started, here, done = [], threading.Semaphore(0), threading.Event()

    def start(count):
        for number in range(count):
            thread = threading.Thread(target=serve_requests, args=(here, done), name=f"server-{number}", daemon=True)
            thread.start()
            started.append(thread)
        for _ in range(count):
            assert here.acquire(timeout=60)

    yield start
    done.set()
    for thread in started:
        thread.join()


def calls_in_progress(found, name):
    return sum(any(frame["name"] == name for frame in row["frames"]) for row in found["threads"])


def test_all_calls_in_progress_can_be_counted(servers):
    servers(32)
    found = stacks.describe()
    assert calls_in_progress(found, "serve_requests") == 32
    assert {row["name"] for row in found["threads"]} >= {"MainThread", "server-0", "server-31"}
    assert found["threads_left_out"] == 0
    first = found["threads"][0]
    assert (first["name"], first["failing"], first["main"]) == ("MainThread", True, True)
    assert first["frames"] == found["failing"]
    assert found["failing"][0]["name"] == "test_all_calls_in_progress_can_be_counted"
    assert found["main"] == found["backward"] == []
    frames = [frame for row in found["threads"] for frame in row["frames"] if frame["name"] == "serve_requests"]
    assert len({id(frame) for frame in frames}) <= 2  # of each line one dict, which the pickle holds once


def test_the_number_of_threads_and_of_their_frames_is_bounded(servers, monkeypatch):
    monkeypatch.setattr(stacks, "_MOST_THREADS", 3)
    monkeypatch.setattr(stacks, "_DEEPEST_OF_OTHERS", 2)
    servers(5)
    found = stacks.describe()
    assert len(found["threads"]) == 4
    assert found["threads_left_out"] == len(sys._current_frames()) - 4
    assert max(len(row["frames"]) for row in found["threads"][1:]) == 2


def test_a_thread_that_fails_is_first_and_the_main_one_is_told_too(servers):
    servers(2)
    found = {}

    def fail():
        found.update(stacks.describe())

    thread = threading.Thread(target=fail, name="worker")
    thread.start()
    thread.join()
    assert [row["name"] for row in found["threads"]][:2] == ["worker", "MainThread"]
    assert found["failing"][0]["name"] == "fail"
    assert any(frame["filename"] == HERE for frame in found["main"])
    assert found["threads"][1]["main"]
    assert found["threads"][1]["frames"] == found["main"]
    assert found["backward"] == []


def test_nothing_is_registered_with_the_programs_threading():
    """`threading.current_thread()` in a thread of C++'s would leave an entry behind."""
    before = set(threading._active)
    assert not stacks.is_autograds()
    stacks.describe()
    assert set(threading._active) == before


def raise_deep(depth):
    if depth:
        raise_deep(depth - 1)
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def test_after_unwinding_the_traceback_tells_the_failing_stack():
    try:
        raise_deep(2)
    except RuntimeError as error:
        found = stacks.describe(error)
    names = [frame["name"] for frame in found["failing"]]
    own = "test_after_unwinding_the_traceback_tells_the_failing_stack"
    assert names[:4] == ["raise_deep", "raise_deep", "raise_deep", own]
    assert found["failing"][0]["line"] == raise_deep.__code__.co_firstlineno + 3
    assert len(names) > 4  # and what called this test


def test_an_oom_is_found_behind_what_was_made_of_it():
    fake = FakeBackend()
    try:
        try:
            raise_deep(0)
        except RuntimeError as problem:
            raise ValueError("gave up") from problem
    except ValueError as error:
        oom = exceptions.oom_behind(error, fake)
    assert isinstance(oom, torch.OutOfMemoryError)
    ring = ValueError("one")
    ring.__context__ = KeyError("two")
    ring.__context__.__context__ = ring
    assert exceptions.oom_behind(ring, fake) is None


def test_a_dump_after_unwinding_has_the_stack_of_the_oom(fake, dumps):
    fake.has_observer = False

    def train():
        raise_deep(1)

    with pytest.raises(torch.OutOfMemoryError), oomscope.record():
        train()
    names = [frame["name"] for frame in dumps()[0]["oomscope"]["stacks"]["failing"]]
    assert names[:3] == ["raise_deep", "raise_deep", "train"]


ENGINE = "/x/site-packages/torch/autograd/graph.py"


def test_the_caller_of_backward_is_the_thread_that_waits_for_it():
    waiting = [{"filename": ENGINE, "line": 979, "name": "_engine_run_backward"}]
    other = [{"filename": HERE, "line": 1, "name": "serve_requests"}]
    assert stacks._waiting_for_backward({1: [], 2: waiting, 3: other}, 1, 3) == waiting
    assert stacks._waiting_for_backward({1: [], 2: [*waiting, *other], 3: waiting}, 1, 3) == waiting
    assert stacks._waiting_for_backward({1: [], 2: waiting, 4: waiting, 3: other}, 1, 3) == []
    assert stacks._waiting_for_backward({1: [], 3: other}, 1, 3) == []
    named_alike = [{"filename": HERE, "line": 1, "name": "backward"}]
    assert stacks._waiting_for_backward({1: [], 3: named_alike}, 1, 3) == []


def in_backward(make_loss, tensors=()):
    """What is told in the middle of backward, in the node that runs `Probe`'s hook."""
    found = []
    make_loss(lambda _gradient: found.append(backward.describe(FakeBackend(), tensors)))
    return found


def row(tensor, name):
    return {"device": 0, "address": tensor.untyped_storage().data_ptr(), "name": name}


def test_outside_backward_there_is_nothing_to_tell():
    assert backward.describe(FakeBackend(), []) is None


def test_the_node_that_runs_and_the_parameters_whose_gradients_it_makes():
    linear = torch.nn.Linear(8, 8)
    named = [row(linear.weight, "model.weight"), row(linear.bias, "model.bias")]

    def run(probe):
        result = linear(torch.randn(4, 8))
        result.register_hook(probe)  # runs in the node that made it
        linear.weight.register_hook(probe)  # runs in the node that takes the gradient in
        result.relu().sum().backward()

    first, second = in_backward(run, named)
    assert first == {"node": "AddmmBackward0", "gradients_of": ["model.bias", "model.weight"], "forward": []}
    assert second == {"node": "AccumulateGrad", "gradients_of": ["model.weight"], "forward": []}


def test_what_lies_behind_another_computation_is_not_named():
    first, second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    named = [row(first.weight, "first.weight"), row(second.weight, "second.weight")]

    def run(probe):
        result = second(first(torch.randn(4, 8)).relu())
        result.register_hook(probe)
        result.sum().backward()

    assert in_backward(run, named)[0]["gradients_of"] == ["second.weight"]


def make_product(weight):
    return torch.randn(4, 8) @ weight


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomaly_mode_tells_where_forward_made_the_node():
    def run(probe):
        with torch.autograd.detect_anomaly():
            result = make_product(torch.randn(8, 8, requires_grad=True))
            result.register_hook(probe)
            result.sum().backward()

    (told,) = in_backward(run)
    assert told["forward"][0] == {
        "filename": HERE,
        "line": make_product.__code__.co_firstlineno + 1,
        "name": "make_product",
    }
    assert parse_context({"autograd": told}).autograd.forward[0].name == "make_product"


def test_without_anomaly_mode_no_metadata_is_made():
    weight = torch.randn(8, 8, requires_grad=True)

    def run(probe):
        result = make_product(weight)
        result.register_hook(probe)
        result.sum().backward()
        assert "traceback_" not in result.grad_fn.metadata

    assert in_backward(run)[0]["forward"] == []


def test_a_dump_in_backward_is_plain(place, dumps, monkeypatch):
    monkeypatch.setenv("OOMSCOPE_WALK_BUDGET", "10")
    fake = place()
    model = torch.nn.Linear(16, 16)

    def train():
        result = model(torch.randn(4, 16))
        result.register_hook(lambda _: fake.run_out())
        result.sum().backward()

    with pytest.raises(torch.OutOfMemoryError), oomscope.record():
        train()
    (found,) = dumps()
    assert found["oomscope"]["autograd"]["node"] == "AddmmBackward0"
    assert found["oomscope"]["autograd"]["gradients_of"] == ["model.bias", "model.weight"]
    assert pickle.dumps(found)
    assert "failures" not in found["oomscope"]
