"""A snapshot with a secret in every text that a file can hold, each of them found again by `SECRET`."""

from __future__ import annotations

import re
from typing import Any

from oomscope.model import Snapshot
from tests.builders import block, entry, frame, loaded, segment, settings

SECRET = re.compile(r"zq\d+xv", re.IGNORECASE)
MIB = 1 << 20
BASE = 0x7F0000000000
TIME = 1_700_000_000_000_000


class Secrets:
    """Hands out secrets, and remembers them."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def __call__(self, around: str = "{}") -> str:
        while "{}" in around:
            self.given.append(f"zq{len(self.given)}xv")
            around = around.replace("{}", self.given[-1], 1)
        return around


def secret_snapshot() -> Snapshot:
    """A failed request after a few steps, in a file that knows of every feature of every release."""
    s = Secrets()
    stacks = _stacks(s)
    trace, segments, at = [], [], BASE
    for stack in stacks:
        segments.append(segment(at, [block(20 * MIB, frames=stack), block(2 * MIB, "inactive")], frames=stack))
        labels = {"compile_context": s(), "user_metadata": s("{} it's")}
        trace.append(entry("segment_alloc", at, 22 * MIB, frames=stack, **labels))
        trace.append(entry("alloc", at, 20 * MIB, frames=stack, **labels))
        at += 64 * MIB
    trace[1]["forward_frames"] = [s('  File "/home/{}/{}.py", line 3, in {}\n    return {}(x)\n'), s()]
    trace.append(entry(s(), BASE, 0))
    trace.append({**entry("snapshot", BASE, 0), s(): s(), s("it's {}"): s()})
    trace.append(entry("oom", MIB, 900 * MIB, frames=stacks[0]))
    for number, item in enumerate(trace):
        item["time_us"] = TIME + 1000 * number
    segments[0] |= {s(): s(), "segment_type": s()}
    segments[1]["blocks"][1] |= {s(): s(), "state": s("it's {}")}
    names = ("{}", "Optimizer.step#{}.step", "Optimizer.{}#Adam.step", "nccl:{}", "aten::{}", "step {}", "c10d::{}")
    annotations = [
        {"stage": stage, "name": s(name), "device": 0, "time_us": TIME + number * 1000, s(): s()}
        for number, name in enumerate(names)
        for stage in ("START", "END", s())
    ]
    top = {
        "external_annotations": annotations,
        "allocator_settings": _settings(s),
        "oomscope": _context(s),
        s(): s(),
        s('it\'s "{}"'): s(),
    }
    made: Snapshot = loaded(segments, [trace], **top)
    return made


def _stacks(s: Secrets) -> list[list[dict[str, Any]]]:
    own = (
        "/home/{}/{}/{}.py", "C:\\Users\\{}\\{}.py", "<ipython-input-3-{}>", "<string>", "<stdin>", "<frozen {}.{}>",
        "<attrs generated init {}.{}>", "/usr/lib/python3.12/{}.py", "/opt/site-packages/{}/{}.py", "/opt/{}.cu",
        "/tmp/torchinductor_{}/ab/{}.py", "/opt/site-packages/{}.py", "{}",
    )  # fmt: skip
    functions = ("{}", "{}.<locals>.{}", "<{}>", "__{}__", "{} {}", "{}é", "4{}", "PyEval{}", "cuda{}")
    native = (
        "at::native::f<{}::{}>(at::Tensor const&)", "void c10::g<std::vector<{}, std::allocator<{}> > >({}*)",
        "at::native::(anonymous namespace)::h<4, {}>()::{lambda({}::T)#1}::operator()({}) const", "bool ::{}::f<at::X>",
        "c10::impl::wrap<c10::CompileTime<at::Tensor ({}), &({}::k)>, at::Tensor>", "{}::at::f(int)", "_ZN2at{}Ev",
        "at::operator<< <{}>(std::ostream&, {} const&)", "torch::autograd::CppNode<{}>::apply()", "Py{}_x", "cu{}",
        "(anonymous namespace)::{}()", "at::f<(({}::E)3)>::call", "{}é::f", "at::g<4{}>",
    )  # fmt: skip
    frames = [frame(s(functions[at % len(functions)]), at, s(path)) for at, path in enumerate(own)]
    frames += [frame(s(name), at, s(own[0])) for at, name in enumerate(functions)]
    # `format` would take the lambda's braces for a place.
    files = ("??", "", "/build/pytorch/aten/src/ATen/x.cpp", "/home/{}/{}.cu")
    frames += [frame(s(name), 0, s(files[at % len(files)])) for at, name in enumerate(native)]
    for item in frames:
        item |= {"fx_node_name": s(), "fx_original_trace": s()}
    return [frames[at:] + frames[:at] for at in range(0, len(frames), 3)]


def _settings(s: Secrets) -> dict[str, Any]:
    conf = "expandable_segments:False,{}:{},backend:{},roundup_power2_divisions:[{}:1,>:4],{}"
    own = {s(): s(), s(): {s(): s()}, s(): [s(), {s(): s()}], s(): None}
    return settings(**own, PYTORCH_CUDA_ALLOC_CONF=s(conf), max_split_size=s(), roundup_power2_divisions={s(): s()})


def _context(s: Secrets) -> dict[str, Any]:
    plain = ("version", "created", "reason", "captured_at", "torch", "cuda", "driver", "python", "platform")
    return {
        "schema_version": 1,
        **{key: s("2.11+{}") for key in plain},
        "exception": {"type": s("{}.ValueError"), "message": s("CUDA out of memory. Tried to allocate 2 GiB. {}")},
        "request": {"device": 0, "alloc_size": 900 * MIB, "limit_or_total": 1000 * MIB, "device_free": MIB, s(): s()},
        "devices": [
            {
                "device": 0, "name": s("NVIDIA {}"), "uuid": s(), "total": 1000 * MIB, "free": MIB, s(): s(),
                "memory_stats": {s(): 1, "num_ooms": 1, s(): s()}, "index": s(),
                "processes": [{"pid": 1, "bytes": MIB, "name": s(), "this": True, s(): s()}],
            }
        ],
        "allocator": {"backend": s(), "conf": s("{}:{},max_split_size_mb:{}")},
        "process": {"host": s(), "pid": 1, "argv": [s()], "rank": s(), "environment": {s(): s()}, s(): s()},
        "stacks": {
            "failing": [frame(s(), 1, s("/{}/{}.py"))], "main": [frame(s("{}.{}"), 1, s()), s()], s(): [s()],
            "backward": [frame(s(), 1, s("/{}/{}.py"))], "threads_left_out": s(),
            "gathering": [{"at": frame(s(), 1, s("/{}/{}.py")), "last": 2, "backward": [frame(s(), 3, s())]}],
            "threads": [{"name": s("Thread-3 ({})"), "frames": [frame(s(), 1, s())], "failing": True, s(): s()}, s()],
        },
        "autograd": {"node": s("{}Backward"), "gradients_of": [s("{}.weight")], "forward": [frame(s(), 1, s())]},
        "sources": [{"filename": s("/{}/{}.py"), "line": 2, "first": 1, "text": [s("{} = 1"), s("{}()"), s()]}],
        "recording": {"started_us": 1, "max_entries": 1000, "stacks": s(), "context": s(), "history": s(), s(): s()},
        "steps": [{"name": s("{} 1"), "begin_us": TIME, "end_us": TIME + 3000}, {"name": s(), "begin_us": TIME + 3001}],
        "marks": [{"name": s(), "time_us": TIME + 5}],
        "metadata": {s(): s(), "names": {s(): [s()]}},
        "tensors": [
            {
                "device": 0, "address": BASE, "bytes": 20 * MIB, "dtype": s(), "shape": [1, s()], "category": s(),
                "name": s("{}.layers.0.{}"), "holders": [s("{}: {}[3]['{}']"), s("{} é{}")], "saved_for": s(), s(): s(),
            }
        ],
        "holders": [
            {
                "device": 0, "holder": s("{}.{}"), "kind": s(), "bytes": MIB, "retained": MIB, s(): s(), "place": s(),
                "path": [s("{}: {}[0].__traceback__ → {}: {}")], "at": frame(s(), 1, s("/{}/{}.py")), "finished": s(),
            },
            {"device": 0, "holder": s("the {} being handled"), "kind": "exception", "path": [s("suspended {}")]},
            {"device": 0, "holder": s("reference cycle: {}.{} → {} (closure) {}"), "kind": "cycle"},
        ],
        "walk": {"seconds": 0.1, "complete": True, "notes": [s()], s(): s()},
        "failures": [s()],
        s(): {s(): [s()]},
    }  # fmt: skip
