"""What the recorder knows at a real OOM: lines of source, every thread's stack, kinds of holders, its own process.

``python -m pytest tests/gpu/test_what_is_recorded.py -s`` also prints what it cost.
"""

from __future__ import annotations

import inspect

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.gpu

from oomscope.model.recorded_parsing import parse_context  # noqa: E402
from tests.gpu import programs  # noqa: E402
from tests.gpu.test_programs import run_program  # noqa: E402

MOST_SECONDS = 0.25  # far more than it takes, on a machine that others use too
FILE = programs.__file__


def recorded(name, tmp_path, which=-1):
    _, dumps = run_program(name, tmp_path)
    key = dumps[which]["oomscope"]
    found = parse_context(key)
    assert found.malformed == 0
    assert found.failures == ()
    print(name, key["seconds"], key["walk"], len(found.sources), "lines", len(found.stacks.threads), "threads")
    assert key["seconds"]["sources"] < MOST_SECONDS
    assert key["seconds"]["stacks"] < MOST_SECONDS
    return found


def holder(found, words):
    return next(row for row in found.holders if (row.holder or "").startswith(words))


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def source_at(found, line):
    return next(source for source in found.sources if (source.filename, source.line) == (FILE, line))


@pytest.mark.parametrize(
    ("name", "words", "kind", "place", "finished"),
    [
        ("leak_total_loss", "leak_total_loss: total_loss", "graph", "local", False),
        ("leak_hook", "leak_hook: model.blocks[2].captured", "list", "local", False),
        ("leak_cycle", "reference cycle: Sample.", "cycle", "cycle", True),
        ("retry", "the OutOfMemoryError being handled", "exception", "exception", True),
        ("exception_list", "exception_list: errors", "exception", "local", True),
        ("prefetch_deque", "prefetch_deque: window", "deque", "local", False),
        ("metric_outputs", "metric_outputs: metric.outputs", "list", "local", False),
    ],
)
def test_the_first_holder_is_of_its_kind(tmp_path, name, words, kind, place, finished):
    found = recorded(name, tmp_path)
    row = holder(found, words)
    print(row)
    assert row == found.holders[0]
    assert (row.kind, row.place, row.finished) == (kind, place, finished)
    assert row.path
    if kind in ("list", "deque"):
        assert row.length is not None
        assert row.length >= row.tensors / 100
    if kind == "deque":
        assert row.maxlen == 100_000
    if name == "exception_list":
        assert all(".__traceback__ → attempt_and_reject: loss" in way for way in row.path)
    if place == "local":
        assert row.at is not None
        assert row.at.filename == FILE
        assert source_at(found, row.at.line)


def test_the_lines_of_the_failing_stack_and_of_the_largest_blocks(tmp_path):
    found = recorded("metric_outputs", tmp_path)
    failing = line_of(programs.metric_outputs, "metric.update(")
    text = source_at(found, failing)
    assert text.text[text.line - text.first].strip() == "metric.update(model(tokens_of(2)))"
    assert len(text.text) == 3
    assert source_at(found, line_of(programs.Block.forward, "return x + self.mlp"))


def test_every_call_in_progress_is_seen(tmp_path):
    found = recorded("serve_threads", tmp_path, which=0)
    serving = [thread for thread in found.stacks.threads if any(frame.name == "serve" for frame in thread.frames)]
    print(len(serving), "calls of serve")
    assert len(serving) == 16
    assert sum(thread.failing for thread in serving) == 1
    assert found.stacks.threads[0].failing
    assert any(frame.name == "serve_threads" for frame in found.stacks.main)
    assert found.stacks.backward == ()


def test_in_backward_the_caller_the_node_and_the_parameter_are_known(tmp_path):
    found = recorded("backward", tmp_path)
    assert found.stacks.failing == ()
    assert found.stacks.backward == found.stacks.main
    assert any(frame.name == "backward" and frame.filename == FILE for frame in found.stacks.backward)
    assert found.autograd.node == "EmbeddingBackward0"
    assert found.autograd.gradients_of == ("model.embed.weight",)
    assert found.autograd.forward == ()
    assert source_at(found, line_of(programs.backward, "loss_of(model"))


def test_anomaly_mode_tells_the_forward_too(tmp_path):
    found = recorded("backward_anomaly", tmp_path)
    assert found.autograd.node == "EmbeddingBackward0"
    lines = [frame.line for frame in found.autograd.forward if frame.filename == FILE]
    assert line_of(programs.GPT.forward, "self.embed(tokens)") in lines


def test_this_process_is_never_somebody_else(tmp_path):
    found = recorded("leak_hook", tmp_path)
    (device,) = found.devices
    print(device.processes, device.memory_stats["reserved_bytes.all.current"])
    reserved = device.memory_stats["reserved_bytes.all.current"]
    for process in device.other_processes():
        assert process.pid != found.process.pid
    own = [process for process in device.processes if process.this]
    assert len(own) <= 1
    assert all(process.bytes is None or process.bytes >= reserved for process in own)


def test_no_lines_of_source_where_they_are_not_wanted(tmp_path):
    _, dumps = run_program("leak_hook", tmp_path, OOMSCOPE_SOURCES="0")
    assert "sources" not in dumps[-1]["oomscope"]
