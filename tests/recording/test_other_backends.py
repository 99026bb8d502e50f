"""Devices that are none of CUDA's, through stand-ins for torch's own functions as its releases declare them."""

from __future__ import annotations

import pickle
import types
from pathlib import Path
from typing import Any

import pytest

import oomscope
from oomscope.analysis import analyze
from oomscope.recording import backend, other_backends
from oomscope.recording.options import build
from oomscope.rendering.text.terminal import render_text

torch = pytest.importorskip("torch", reason="exceptions and tensors are torch's")
pytestmark = pytest.mark.torch
GIB = 1 << 30


def stand_in(**devices: Any) -> Any:
    """A torch without CUDA that has `devices`."""
    made = types.SimpleNamespace(
        __version__="2.15.0",
        version=types.SimpleNamespace(cuda=None),
        _C=types.SimpleNamespace(),
        backends=types.SimpleNamespace(mps=types.SimpleNamespace(is_available=lambda: "mps" in devices)),
        OutOfMemoryError=torch.OutOfMemoryError,
        cuda=types.SimpleNamespace(),
        **devices,
    )
    for name in ("Tensor", "nn", "optim", "autograd", "is_tensor", "UntypedStorage", "strided"):
        setattr(made, name, getattr(torch, name))
    return made


def xpu(calls: list[Any], *, records: bool = True) -> Any:
    """``torch.xpu`` as torch 2.11 to 2.15 have it (torch/xpu/memory.py)."""

    def record(enabled="all", context="all", stacks="all", max_entries=1, clear_history=False, skip_actions=None):
        calls.append((enabled, context, stacks, max_entries))

    memory = types.SimpleNamespace(_snapshot=lambda: {"segments": [], "device_traces": [[]]})
    if records:
        memory._record_memory_history = record
    return types.SimpleNamespace(
        memory=memory,
        is_available=lambda: True,
        is_initialized=lambda: True,
        device_count=lambda: 1,
        current_device=lambda: 0,
        memory_stats=lambda _: {"allocated_bytes.all.current": 3 * GIB, "reserved_bytes.all.current": 4 * GIB,
                                "allocated_bytes.all.peak": 5 * GIB, "time": 1.5},
        mem_get_info=lambda _: (GIB, 16 * GIB),
        get_device_properties=lambda _: types.SimpleNamespace(name="Intel(R) Arc(TM) A770 Graphics"),
    )  # fmt: skip


def mps() -> Any:
    return types.SimpleNamespace(
        is_available=lambda: True,
        current_allocated_memory=lambda: 9 * GIB,
        driver_allocated_memory=lambda: 11 * GIB,
        recommended_max_memory=lambda: 12 * GIB,
    )


def test_cuda_goes_before_all_others():
    both = stand_in(xpu=xpu([]))
    both.version.cuda = "13.0"
    assert other_backends.instead_of_cuda(both) is None
    assert other_backends.instead_of_cuda(stand_in()) is None


def test_xpu_is_recorded_with_the_arguments_that_it_takes():
    calls: list[Any] = []
    found = other_backends.instead_of_cuda(stand_in(xpu=xpu(calls)))
    assert isinstance(found, other_backends.XpuBackend)
    options = build({"max_entries": 77}, {})
    found.start_history(options)
    found.stop_history()
    assert calls == [("all", "alloc", "python", 77), (None, "all", "all", 1)]
    assert found.levels(0)[:3] == (3 * GIB, 4 * GIB, 5 * GIB)
    assert found.devices_in_use() == [0]
    assert [name for name in found.asked(options) if name != "augment_with_fx_traces"] == []


def test_an_older_xpu_keeps_no_history():
    found = other_backends.XpuBackend(stand_in(xpu=xpu([], records=False)))
    assert not found.keeps_history()
    assert found.snapshot() == {"segments": [], "device_traces": []}


def test_mtia_records_by_functions_of_its_own():
    calls: list[Any] = []
    module = types.SimpleNamespace(
        is_available=lambda: True,
        record_memory_history=lambda enabled="all", stacks="python", max_entries=0: calls.append((enabled, stacks)),
        snapshot=lambda: {"segments": [1]},
        attach_out_of_memory_observer=calls.append,
    )
    found = other_backends.instead_of_cuda(stand_in(mtia=module))
    assert isinstance(found, other_backends.MtiaBackend)
    found.start_history(build({"stacks": "all"}, {}))
    found.stop_history()
    found.observe(len)
    assert calls == [("all", "cpp"), (None, "python"), len]
    assert found.segments() == [1]


MESSAGE = (
    "MPS backend out of memory (MPS allocated: 9.00 GiB, other allocations: 2.00 GiB, max allowed: 11.50 GiB). "
    "Tried to allocate 1.00 GiB on private pool."
)


def test_a_step_on_mps_says_what_is_there_and_no_peak():
    found = other_backends.MpsBackend(stand_in(mps=mps())).levels(0)
    assert found == (9 * GIB, 11 * GIB, None, None, None)


def test_mps_gives_figures_and_the_message_explained(tmp_path: Path, capfd):
    backend.use(other_backends.MpsBackend(stand_in(mps=mps())))
    try:
        with pytest.raises(RuntimeError), oomscope.record(output_dir=tmp_path, walk_budget=0, verdict=0):
            raise RuntimeError(MESSAGE)
    finally:
        backend.use(None)
    (path,) = tmp_path.glob("*.pickle")
    assert "keeps no history of MPS memory" in capfd.readouterr().err
    context = pickle.loads(path.read_bytes())["oomscope"]
    assert context["device_type"] == "mps"
    assert context["devices"][0]["memory_stats"]["allocated_bytes.all.current"] == 9 * GIB
    findings = analyze(oomscope.load(path))
    assert findings.refused is not None
    assert findings.refused.message.kind == "torch-mps"
    text = render_text(findings)
    assert text.startswith("Out of memory · PyTorch on Apple GPU (MPS)")
    assert "9.00 GiB" in text
