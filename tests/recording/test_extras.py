"""What is asked of torch beyond stacks: by what each release takes, and at what a dump gets from it."""

from __future__ import annotations

import copy
import sys
import types
from typing import Any, ClassVar

import pytest

from oomscope.recording import extras, history
from oomscope.recording.backend import Backend
from oomscope.recording.options import build
from oomscope.recording.pool_names import pool_rows

torch = pytest.importorskip("torch", reason="the lines of generated code are torch's")
pytestmark = pytest.mark.torch


def torch_2_1(enabled="all", context="all", stacks="all", max_entries=1, device=None):
    """``_record_memory_history`` of torch 2.1 to 2.7."""


def torch_2_8(
    enabled="all", context="all", stacks="all", max_entries=1, device=None, clear_history=False, compile_context=False,
    global_record_annotations=False,
):  # fmt: skip
    """Of torch 2.8 to 2.10."""


def torch_2_14(
    enabled="all", context="all", stacks="all", max_entries=1, device=None, clear_history=False, compile_context=False,
    global_record_annotations=False, skip_actions=None, record_pinned_host_memory=False, record_cuda=True,
):  # fmt: skip
    """Of torch 2.14 and 2.15."""


@pytest.mark.parametrize(
    ("record", "names"),
    [
        (torch_2_1, set()),
        (torch_2_8, {"global_record_annotations", "compile_context"}),
        (torch_2_14, {"global_record_annotations", "compile_context", "record_pinned_host_memory"}),
    ],
)
def test_each_release_is_asked_for_what_it_takes(record, names):
    assert extras.arguments(record, build({"compile_context": True}, {})) == dict.fromkeys(names, True)
    assert extras.asked(sorted(names), build({"fx_traces": False}, {})) == sorted(names)


def test_regions_are_asked_for_once_the_program_compiles(monkeypatch):
    calls: list[Any] = []

    def record(enabled="all", context="all", stacks="all", max_entries=1, compile_context=False):
        calls.append((enabled, max_entries, compile_context))

    compiler = types.SimpleNamespace(FRAME_COUNTER=0)
    monkeypatch.setitem(sys.modules, "torch._dynamo.convert_frame", compiler)
    fake = Backend(types.SimpleNamespace(cuda=types.SimpleNamespace(memory=types.SimpleNamespace())))
    fake.torch.cuda.memory._record_memory_history = record
    options = build({"max_entries": 5}, {})
    fake.start_history(options)
    assert not fake.ask_for_more(options)
    compiler.FRAME_COUNTER = 1
    assert fake.ask_for_more(options)
    assert not fake.ask_for_more(options)
    assert calls == [("all", 5, False), ("all", 5, True)]


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("all_threads", "global_record_annotations"),
        ("compile_context", "compile_context"),
        ("pinned", "record_pinned_host_memory"),
    ],
)
def test_each_can_be_left_out(option, name):
    assert name not in extras.arguments(torch_2_14, build({option: False}, {}))
    assert name not in extras.arguments(torch_2_14, build({}, {f"OOMSCOPE_{option.upper()}": "no"}))


def test_pinned_memory_is_told_to_stop_as_well():
    calls: list[Any] = []

    def record(enabled="all", context="all", stacks="all", max_entries=1, record_pinned_host_memory=False):
        calls.append((enabled, record_pinned_host_memory))

    fake = Backend(types.SimpleNamespace(cuda=types.SimpleNamespace(memory=types.SimpleNamespace())))
    fake.torch.cuda.memory._record_memory_history = record
    fake.start_history(build({}, {}))
    fake.stop_history()
    fake.start_history(build({"pinned": False}, {}))
    fake.stop_history()
    assert calls == [("all", True), (None, True), ("all", False), (None, False)]


@pytest.fixture
def generated():
    """The file of code that torch.fx generated, by torch's own compiler, with the lines it was made from."""
    config = pytest.importorskip("torch.fx.experimental._config")
    registry = __import__("torch.fx.traceback", fromlist=["x"])
    if not hasattr(registry, "_FX_METADATA_REGISTRY") or not hasattr(config, "enrich_profiler_metadata"):
        pytest.skip("torch 2.10 or newer keeps these lines")
    known = set(registry._FX_METADATA_REGISTRY)
    torch._dynamo.reset()
    with config.patch(enrich_profiler_metadata=True):
        torch.compile(lambda x: torch.relu(x) + 1, backend="eager")(torch.ones(3))
    yield sorted(set(registry._FX_METADATA_REGISTRY) - known)
    for name in set(registry._FX_METADATA_REGISTRY) - known:
        del registry._FX_METADATA_REGISTRY[name]
    torch._dynamo.reset()


def frames_of(files):
    return [{"filename": name, "line": line, "name": "forward"} for name in files for line in range(1, 30)]


def test_generated_frames_get_the_same_lines_as_torch_gives_them(generated):
    shared = frames_of(generated)
    snapshot = {
        "segments": [{"blocks": [{"frames": shared[:10]}, {}]}],
        "device_traces": [[{"action": "alloc", "frames": shared}, {"action": "oom"}]],
    }
    expected = torch._utils._augment_memory_snapshot_stack_traces(copy.deepcopy(snapshot))
    extras.add_fx_traces(snapshot)
    assert snapshot == expected
    traces = [frame["fx_original_trace"] for frame in shared if "fx_original_trace" in frame]
    assert traces
    assert any("test_extras.py" in trace for trace in traces)


def test_without_such_code_no_frame_is_touched():
    snapshot = {"segments": [], "device_traces": [[{"frames": [{"filename": "a.py", "line": 1, "name": "f"}]}]]}
    before = copy.deepcopy(snapshot)
    extras.add_fx_traces(snapshot)
    assert snapshot == before


class MemPool:
    """As `torch.cuda.MemPool` looks from Python."""

    def __init__(self, number: int) -> None:
        self.id = (0, number)


class CUDAGraph:
    """As `torch.cuda.CUDAGraph` looks: its pool is a method, and fails before a capture."""

    def __init__(self, number: int | None) -> None:
        self.number = number

    def pool(self) -> tuple[int, int]:
        if self.number is None:
            raise RuntimeError("not captured")
        return (self.number, 0)


MODULE = types.SimpleNamespace(MemPool=MemPool, CUDAGraph=CUDAGraph)
GLOBAL_POOL = MemPool(41)


class Engine:
    def __init__(self) -> None:
        self.kv_pool = MemPool(42)
        self.graphs = [CUDAGraph(43), CUDAGraph(None)]


def test_pools_are_named_by_the_way_to_them():
    engine = Engine()
    scratch = MemPool(44)
    rows = {tuple(row["pool"]): row["name"] for row in pool_rows([MODULE])}
    function = "test_pools_are_named_by_the_way_to_them"
    assert rows[0, 42] == f"{function}: engine.kv_pool"
    assert rows[0, 44] == f"{function}: scratch"
    assert rows[0, 41].endswith("test_extras: GLOBAL_POOL")
    assert rows[43, 0] == f"{function}: engine.graphs[0]"
    assert len(rows) == 4
    assert engine is not scratch


def test_pools_of_two_engines_bear_the_names_of_their_engines():
    engines = {"chat": Engine(), "draft": Engine()}
    engines["draft"].kv_pool = MemPool(52)
    rows = {tuple(row["pool"]): row["name"] for row in pool_rows([MODULE])}
    where = "test_pools_of_two_engines_bear_the_names_of_their_engines"
    assert rows[0, 42] == f"{where}: engines['chat'].kv_pool"
    assert rows[0, 52] == f"{where}: engines['draft'].kv_pool"


def test_a_pool_that_graphs_share_is_theirs_and_one_that_the_program_made_its_own():
    class Shared(CUDAGraph):
        def pool(self) -> tuple[int, int]:
            return (0, self.number or 0)

    handles, own = [Shared(61), Shared(61)], MemPool(62)
    into_own = Shared(62)
    kinds = {tuple(row["pool"]): row["kind"] for row in pool_rows([MODULE])}
    assert (kinds[0, 61], kinds[0, 62]) == ("graph", "mempool")
    assert handles
    assert own.id == into_own.pool()


def test_a_pool_that_no_call_has_is_named_by_its_owner():
    kept = [Engine()]
    del kept  # the engine is gone with its list
    holder = types.SimpleNamespace(a=types.SimpleNamespace(b=types.SimpleNamespace(engine=Engine())))

    def asked() -> dict[tuple[int, int], str | None]:
        return {tuple(row["pool"]): row["name"] for row in pool_rows([MODULE])}  # type: ignore[misc]

    assert asked()[0, 42] == "Engine.kv_pool"
    assert holder.a.b.engine.kv_pool.id == (0, 42)


def test_without_such_classes_nothing_is_searched():
    assert pool_rows([types.SimpleNamespace()]) == []


def test_a_recording_asks_again_once_and_only_where_it_began_itself(monkeypatch):
    class Asked(Backend):
        calls: ClassVar[list[Any]] = []

        def is_history_on(self) -> bool:
            return False

        def start_history(self, options: Any) -> None:
            self.calls.append("start")

        def stop_history(self) -> None:
            self.calls.append("stop")

        def ask_for_more(self, options: Any) -> bool:
            self.calls.append(options.max_entries)
            return True

    compiler = types.SimpleNamespace(FRAME_COUNTER=0)
    monkeypatch.setitem(sys.modules, "torch._dynamo.convert_frame", compiler)
    fake = Asked(types.SimpleNamespace())
    outer, inner = build({"max_entries": 5}, {}), build({"max_entries": 6}, {})
    history.join(fake, outer)
    history.join(fake, inner)
    history.ask_for_more(fake)
    compiler.FRAME_COUNTER = 1
    history.ask_for_more(fake)
    history.ask_for_more(fake)
    history.part(fake)
    history.part(fake)
    history.ask_for_more(fake)
    assert fake.calls == ["start", 5, "stop"]
