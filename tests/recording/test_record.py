"""What ``oomscope.record`` promises, on a backend without a GPU."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import pickle
import sys
import threading
import weakref

import pytest

torch = pytest.importorskip("torch", reason="recording needs torch")
pytestmark = pytest.mark.torch

import oomscope  # noqa: E402
from oomscope import recording  # noqa: E402
from oomscope.recording import observer  # noqa: E402
from tests.recording.fake import MESSAGE  # noqa: E402


def run_out_and_go_on(fake):
    with contextlib.suppress(torch.OutOfMemoryError):
        fake.run_out()


def test_oom_leaves_one_dump_and_the_exception_as_it_was(fake, dumps, tmp_path):
    @oomscope.record
    def train():
        fake.run_out()

    with pytest.raises(torch.OutOfMemoryError) as caught:
        train()
    assert type(caught.value) is torch.OutOfMemoryError
    assert caught.value.args == (MESSAGE,)
    assert caught.value.__cause__ is None
    (dump,) = dumps()
    key = dump["oomscope"]
    assert (key["reason"], key["captured_at"]) == ("oom", "observer")
    assert key["request"] == {"device": 0, "alloc_size": 2 << 30, "limit_or_total": 16 << 30, "device_free": 1 << 30}
    assert key["exception"]["message"].strip() == MESSAGE
    assert dump["device_traces"][0][0]["action"] == "oom"
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == [f"oomscope: {next(tmp_path.glob('*.pickle'))}"]


def test_history_is_started_once_dumped_before_it_is_stopped_and_stopped_once(fake):
    with oomscope.record(on=("exit",), max_entries=77):
        with oomscope.record():
            pass
        assert fake.calls == ["start all python alloc 77"]
    assert fake.calls == ["start all python alloc 77", "snapshot", "stop"]


def test_someone_elses_recording_is_joined_and_left_running(place, dumps):
    fake = place(recording=True)
    with oomscope.record(on=("exit",)):
        pass
    assert fake.calls == ["snapshot"]
    assert fake.recording
    assert dumps()[0]["oomscope"]["recording"]["joined"] is True


def test_recording_begins_when_cuda_does(place, dumps):
    fake = place(up=False)
    with oomscope.record():
        assert fake.calls == []
        fake.bring_up()
        assert fake.calls[0].startswith("start")
        run_out_and_go_on(fake)
    assert len(dumps()) == 1


def test_a_recording_that_ended_before_cuda_is_up_never_begins(place):
    fake = place(up=False)
    with oomscope.record():
        pass
    fake.bring_up()
    assert fake.calls == []
    assert len(fake.waiting) == 1


def test_many_calls_wait_for_cuda_only_once(place):
    fake = place(up=False)

    @oomscope.record
    def step():
        return None

    for _ in range(5):
        step()
    assert len(fake.waiting) == 1


def test_one_observer_serves_a_process_for_ever(fake):
    for _ in range(3):
        with oomscope.record():
            pass
    assert len(fake.observers) == 1
    fake.notify()  # nobody records: nothing happens
    assert "snapshot" not in fake.calls


def test_an_observer_that_fails_never_raises(fake, monkeypatch, capfd):
    monkeypatch.setattr("oomscope.recording.session.Session.dump_oom", lambda *_: 1 / 0)
    with pytest.raises(torch.OutOfMemoryError), oomscope.record():
        fake.run_out()
    assert "could not look at the OOM: ZeroDivisionError" in capfd.readouterr().err


def test_an_oom_inside_the_observer_is_left_alone(fake, dumps, monkeypatch):
    monkeypatch.setattr(fake, "devices_in_use", lambda: fake.notify() or [0])
    with pytest.raises(torch.OutOfMemoryError), oomscope.record():
        fake.run_out()
    assert len(dumps()) == 1


def test_a_swallowed_oom_is_dumped_too(fake, dumps):
    with oomscope.record() as recording, pytest.raises(torch.OutOfMemoryError):
        fake.run_out()
    assert recording.ooms == 1
    assert len(recording.files) == len(dumps()) == 1


def test_without_an_observer_the_except_path_dumps_and_says_so(place, dumps, capfd):
    fake = place(observer=False)
    with pytest.raises(torch.OutOfMemoryError), oomscope.record():
        fake.run_out()
    key = dumps()[0]["oomscope"]
    assert key["captured_at"] == "except"
    assert key["exception"] == {"type": "OutOfMemoryError", "message": MESSAGE}
    assert "no OOM observer" in capfd.readouterr().err


def test_a_driver_oom_that_no_observer_hears_is_dumped_after_unwinding(fake, dumps):
    with pytest.raises(RuntimeError), oomscope.record():
        raise RuntimeError("CUDA error: out of memory")
    assert dumps()[0]["oomscope"]["captured_at"] == "except"


def test_no_more_dumps_than_allowed_and_the_last_is_always_kept(fake, dumps):
    with oomscope.record(max_dumps=2, min_interval=0) as recording:
        for _ in range(5):
            run_out_and_go_on(fake)
    assert [dump["oomscope"]["recording"]["ooms"] for dump in dumps()] == [1, 5]
    assert len(recording.files) == 2


def test_an_oom_too_soon_after_another_is_dumped_only_if_it_ends_the_job(fake, dumps):
    @oomscope.record(min_interval=1000)
    def train():
        for attempt in range(4):
            try:
                fake.run_out()
            except torch.OutOfMemoryError:
                if attempt == 3:
                    raise

    with pytest.raises(torch.OutOfMemoryError):
        train()
    assert [dump["oomscope"]["captured_at"] for dump in dumps()] == ["observer", "except"]


def test_an_oom_elsewhere_is_dumped_before_unwinding_however_soon_it_comes(fake, dumps):
    @oomscope.record(min_interval=1000)
    def train():
        for _ in range(3):
            run_out_and_go_on(fake)  # as cuDNN does while it tries its plans
        fake.run_out()

    with pytest.raises(torch.OutOfMemoryError):
        train()
    assert [dump["oomscope"]["captured_at"] for dump in dumps()] == ["observer", "observer"]
    assert [dump["oomscope"]["recording"]["ooms"] for dump in dumps()] == [1, 4]


def test_no_more_places_than_dumps_are_kept_are_dumped_too_soon(fake, dumps):
    with oomscope.record(max_dumps=2, min_interval=1000):
        run_out_and_go_on(fake)
        run_out_and_go_on(fake)
        run_out_and_go_on(fake)
    assert [dump["oomscope"]["recording"]["ooms"] for dump in dumps()] == [1, 2]


def test_an_oom_given_up_on_in_other_words_is_dumped(fake, dumps):
    @oomscope.record(min_interval=1000)
    def search():
        for _ in range(2):
            run_out_and_go_on(fake)
        raise RuntimeError("No executable batch size found, reached zero.")

    with pytest.raises(RuntimeError, match="reached zero"):
        search()
    assert [dump["oomscope"]["captured_at"] for dump in dumps()] == ["observer", "except"]


def test_nested_recordings_make_one_dump_by_the_innermost(fake, dumps):
    @oomscope.record(metadata={"who": "inner"})
    def inner():
        fake.run_out()

    with pytest.raises(torch.OutOfMemoryError), oomscope.record(metadata={"who": "outer"}) as outer:
        inner()
    (dump,) = dumps()
    assert dump["oomscope"]["metadata"] == {"who": "inner"}
    assert outer.ooms == 1


def test_a_recursive_function_dumps_its_exception_once(fake, dumps):
    @oomscope.record(on="exception")
    def recurse(depth):
        if depth == 0:
            raise KeyError("x")
        recurse(depth - 1)

    with pytest.raises(KeyError):
        recurse(3)
    assert len(dumps()) == 1


@pytest.mark.parametrize(
    ("on", "error", "expected"),
    [
        ("oom", KeyError, []),
        ("exception", KeyError, ["exception"]),
        (("oom", "exit"), None, ["exit"]),
        ("exit", KeyError, ["exit"]),
        ("exit", torch.OutOfMemoryError, ["exit"]),
        (("oom", "exit"), torch.OutOfMemoryError, ["oom"]),
        (("exception", "exit"), KeyError, ["exception"]),
        ("exception", KeyboardInterrupt, []),
        ("exception,exit", SystemExit, ["exit"]),
    ],
)
def test_when_to_dump(fake, dumps, on, error, expected):
    @oomscope.record(on=on)
    def train():
        if error is not None:
            raise error("x")

    with contextlib.nullcontext() if error is None else pytest.raises(error):
        train()
    assert [dump["oomscope"]["reason"] for dump in dumps()] == expected


def test_oom_in_a_dataloader_worker_is_said_to_be_elsewhere(fake, dumps, capfd):
    with pytest.raises(torch.OutOfMemoryError), oomscope.record():
        raise torch.OutOfMemoryError(
            f"Caught OutOfMemoryError in DataLoader worker process 3.\nOriginal ...\n{MESSAGE}"
        )
    assert dumps() == []
    assert "the OOM was in DataLoader worker process 3, another process" in capfd.readouterr().err


def test_nothing_outlives_the_handler(fake):
    """No tensor, no frame and no exception is kept, with the collector off so that no cycle is swept away."""

    class Batch:
        pass

    @oomscope.record(walk_budget=10)
    def train(kept):
        activation = torch.zeros(1000)
        batch = Batch()
        batch.activation = activation
        kept.append(weakref.ref(batch))
        fake.run_out()

    def swallow(kept):
        with contextlib.suppress(torch.OutOfMemoryError):
            train(kept)

    gc.collect()
    gc.disable()
    try:
        kept = []
        swallow(kept)
        assert kept[0]() is None
    finally:
        gc.enable()


def test_a_local_deleted_after_a_caught_oom_is_gone(fake):
    """Looking at a running function's locals must not keep them."""

    class Batch:
        pass

    gc.collect()
    gc.disable()
    try:
        with oomscope.record(walk_budget=10):
            batch = Batch()
            kept = weakref.ref(batch)
            run_out_and_go_on(fake)
            del batch
            assert kept() is None
    finally:
        gc.enable()


def test_collector_is_on_again_after_a_dump(fake):
    with oomscope.record():
        fake.notify()
    assert gc.isenabled()


def test_methods_keep_their_kind(fake):
    class Trainer:
        @oomscope.record
        def method(self, x):
            "doc"
            return self, x

        @staticmethod
        @oomscope.record
        def inside(x):
            return x

        @oomscope.record
        @staticmethod
        def outside(x):
            return x

        @oomscope.record()
        @classmethod
        def of_class(cls):
            return cls

    trainer = Trainer()
    assert trainer.method(1) == (trainer, 1)
    assert Trainer.method.__doc__ == "doc"
    assert Trainer.method.__name__ == "method"
    assert Trainer.inside(2) == 2
    assert trainer.outside(3) == 3
    assert Trainer.of_class() is Trainer
    with pytest.raises(TypeError, match="functions and methods"):
        oomscope.record(Trainer)


def test_generators_take_values_throw_and_return(fake, dumps):
    @oomscope.record
    def numbers():
        got = yield 1
        try:
            yield got
        except KeyError:
            yield "thrown"
        return "end"

    generator = numbers()
    assert next(generator) == 1
    assert generator.send(5) == 5
    assert generator.throw(KeyError) == "thrown"
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end"
    assert fake.calls[-1] == "stop"

    @oomscope.record
    def failing():
        yield 1
        fake.run_out()

    with pytest.raises(torch.OutOfMemoryError):
        list(failing())
    assert len(dumps()) == 1


def test_coroutines_and_async_generators(fake, dumps):
    @oomscope.record
    async def train():
        await asyncio.sleep(0)
        return 7

    @oomscope.record
    async def stream():
        got = yield 1
        try:
            yield got
        except KeyError:
            yield "thrown"

    @oomscope.record
    async def failing():
        await asyncio.sleep(0)
        fake.run_out()

    async def main():
        assert await asyncio.gather(train(), train()) == [7, 7]
        items = stream()
        assert await items.__anext__() == 1
        assert await items.asend(4) == 4
        assert await items.athrow(KeyError) == "thrown"
        with pytest.raises(StopAsyncIteration):
            await items.__anext__()
        half = stream()
        await half.__anext__()
        await half.aclose()
        async with oomscope.record() as inside:
            inside.mark("x")
        with pytest.raises(torch.OutOfMemoryError):
            await failing()

    asyncio.run(main())
    assert fake.calls.count("stop") == sum(call.startswith("start") for call in fake.calls)
    assert len(dumps()) == 1


def test_threads_record_at_once(fake, dumps):
    ready = threading.Barrier(4)

    @oomscope.record
    def work():
        ready.wait()
        for _ in range(20):
            with recording.step():
                recording.mark("x")
        ready.wait()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [call.split()[0] for call in fake.calls] == ["start", "stop"]


def test_steps_marks_and_metadata_are_in_the_dump(fake, dumps):
    with oomscope.record(on="exit", metadata={"run": 3}) as recorder:
        for index in range(3):
            with recorder.step():
                fake.allocated += index << 20
        recorder.mark("eval")
        recorder.step("last")
    key = dumps()[0]["oomscope"]
    assert [step["name"] for step in key["steps"]] == ["0", "1", "2", "last"]
    assert key["steps"][2]["allocated"] == [(1 << 30) + (3 << 20)]
    assert [step.get("peak_allocated") for step in key["steps"]][:2] == [[None], [(1 << 30) + (1 << 20)]]
    assert key["steps"][0]["begin_us"] <= key["steps"][0]["end_us"] <= key["steps"][1]["begin_us"]
    assert key["steps"][3]["end_us"] is None
    assert key["marks"][0]["name"] == "eval"
    assert key["metadata"] == {"run": 3}


def test_steps_say_their_shape(fake, dumps):
    with oomscope.record(on="exit") as recorder:
        with recorder.step(batch=8, seq=512):
            pass
        with recording.step("long", batch=8, seq=1024, name_of_the_corpus="x"):
            pass
        recorder.step(side=224)
    steps = dumps()[0]["oomscope"]["steps"]
    assert [step["shape"] for step in steps] == [
        {"batch": 8, "seq": 512},
        {"batch": 8, "seq": 1024},  # what is no number is left out
        {"side": 224},
    ]


def test_optimizer_steps_count_where_nobody_announces_any(fake, dumps):
    parameter = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    with oomscope.record(on="exit"):
        for _ in range(3):
            optimizer.step()
    assert [step["name"] for step in dumps()[0]["oomscope"]["steps"]] == ["0", "1", "2"]
    with oomscope.record() as recorder:
        with recorder.step():
            optimizer.step()
        assert len(recorder._last.step_log.rows()["steps"]) == 1
    optimizer.step()
    assert not sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks


def test_tracked_names_are_the_programs_own_and_keep_nothing_alive(fake, dumps):
    model = torch.nn.Linear(4, 4)
    with oomscope.record(on="exit", walk_budget=10) as recorder:
        recorder.track(model=model, count=3)
    assert {row["name"] for row in dumps()[0]["oomscope"]["tensors"]} >= {"model.weight", "model.bias"}


def test_snapshot_at_will(fake, tmp_path):
    target = tmp_path / "deep" / "mine.pickle"
    with oomscope.record():
        assert recording.snapshot(target) == target
        assert recording.snapshot(target) == target.with_name("2_mine.pickle")
    assert pickle.loads(target.read_bytes())["oomscope"]["reason"] == "request"
    assert recording.snapshot(target) is None


def test_steps_without_a_recording_are_nothing():
    with recording.step():
        recording.mark("x")
        recording.track(x=1)


def test_only_some_ranks_and_devices(fake, dumps, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    with pytest.raises(torch.OutOfMemoryError), oomscope.record(ranks=[0]):
        fake.run_out()
    assert dumps() == []
    with oomscope.record(ranks=[3], device=0):
        fake.notify(1)
        assert dumps() == []
        fake.notify(0)
    (dump,) = dumps()
    assert [segment["device"] for segment in dump["segments"]] == [0]
    assert [len(trace) for trace in dump["device_traces"]] == [1, 0]
    assert dump["oomscope"]["process"]["rank"] == 3


@pytest.mark.parametrize("words", ["no CUDA device is visible", "torch 1.13 cannot record memory history"])
def test_what_cannot_be_recorded_is_said_once_and_the_function_runs(place, capfd, words):
    place().never = words

    @oomscope.record
    def train():
        with recording.step():
            return 5

    assert [train(), train()] == [5, 5]
    assert capfd.readouterr().err == f"oomscope: nothing is recorded: {words}\n"


def test_another_allocator_is_said_once(place, capfd, dumps):
    fake = place()
    fake.not_now = "the cudaMallocAsync allocator keeps no history"
    with oomscope.record(on=("oom", "exit")), oomscope.record():
        pass
    assert capfd.readouterr().err == "oomscope: the cudaMallocAsync allocator keeps no history\n"
    assert fake.calls == []


def test_without_torch_the_function_runs(place, monkeypatch, capfd):
    place()
    monkeypatch.setattr("oomscope.recording.backend.current", lambda: None)
    with oomscope.record():
        pass
    assert "torch is not installed" in capfd.readouterr().err


def test_cpu_torch_is_told_in_words(capfd, place, monkeypatch):
    from oomscope.recording import backend

    place()
    backend.use(None)
    if torch.version.cuda is not None:
        pytest.skip("this torch has CUDA")
    with oomscope.record():
        pass
    assert "is built without CUDA" in capfd.readouterr().err


def test_three_lines_at_an_oom(fake, capfd, tmp_path):
    def train():
        losses = [torch.zeros(1 << 18) for _ in range(40)]
        fake.run_out()
        return losses

    with pytest.raises(torch.OutOfMemoryError), oomscope.record(walk_budget=120):
        train()
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0] == (
        "oomscope: CUDA out of memory on device 0: 2.00 GiB asked for, 1.00 GiB free of 16.0 GiB; "
        "this process has 1.00 GiB allocated and 2.00 GiB reserved"
    )
    assert lines[1].startswith("oomscope: held by ")
    assert "train: losses 40.0 MiB" in lines[1]
    assert "read it with: oomscope report " in lines[2]
    assert str(tmp_path) in lines[2]


def test_a_signal_asks_for_a_snapshot(fake, dumps):
    signal = pytest.importorskip("signal")
    if not hasattr(signal, "SIGUSR1"):
        pytest.skip("no SIGUSR1 here")
    with oomscope.record(signal="SIGUSR1"):
        signal.raise_signal(signal.SIGUSR1)
    assert [dump["oomscope"]["reason"] for dump in dumps()] == ["signal"]
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_a_signal_while_a_step_is_noted_waits_for_nothing(fake, dumps, monkeypatch):
    """The handler runs between two instructions of whatever the main thread does, locks held or not."""
    signal = pytest.importorskip("signal")
    if not hasattr(signal, "SIGUSR1"):
        pytest.skip("no SIGUSR1 here")
    with oomscope.record(signal="SIGUSR1") as recorder:
        step_log = recorder._last.step_log
        with step_log._lock, observer._lock:
            signal.raise_signal(signal.SIGUSR1)
        monkeypatch.setattr(fake, "allocator", lambda: signal.raise_signal(signal.SIGUSR1))
        recorder.snapshot()  # asked for another while one is made: it comes with the next step
        monkeypatch.undo()
        recorder.step()
    assert [dump["oomscope"]["reason"] for dump in dumps()] == ["signal", "request", "signal"]


def test_a_signal_that_someone_handles_is_theirs(fake, dumps, capfd):
    signal = pytest.importorskip("signal")
    if not hasattr(signal, "SIGUSR1"):
        pytest.skip("no SIGUSR1 here")
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
    try:
        with oomscope.record(signal="SIGUSR1"):
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [1]
    assert dumps() == []
    assert "handled by someone else" in capfd.readouterr().err
