"""Which line of code stands for a stack."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.attribution.sites import NO_LOCATION, SiteTable, is_cpp, is_torch, stack_text
from oomscope.model import NO_STACK, Frame, StackTable

HASH = "c" + "a2b3c4d5e6" * 5

TORCH = [
    "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py",
    "/usr/lib/python3/dist-packages/torch/optim/adamw.py",
    r"C:\Users\me\venv\Lib\site-packages\torch\nn\functional.py",
    r"D:\a\site-packages\torch\_tensor.py",
    "/opt/conda/lib/python3.11/site-packages/functorch/__init__.py",
    "/venv/lib/python3.12/site-packages/torch_npu/npu/memory.py",
    "/venv/lib/python3.12/site-packages/triton/runtime/jit.py",
    "/home/me/src/pytorch/torch/nn/modules/module.py",
    "/home/me/src/pytorch/torch/_dynamo/eval_frame.py",
    "/home/me/src/pytorch/torch/optim/adamw.py",
    "/home/me/src/pytorch/torch/utils/checkpoint.py",
    "/home/me/src/pytorch/torch/storage.py",
    "/home/me/src/pytorch/torch/nn/attention/flex_attention.py",
    "/tmp/torchinductor_me/ab/cabcdef.py",
    rf"C:\Temp\torchinductor_me\ab\{HASH}.py",
    f"/cache/inductor/q7/{HASH}.py",
    "<eval_with_key>.12",
    "<torch_package_0>.model.py",
]
STANDARD = [
    "/usr/lib/python3.10/threading.py",
    "/usr/local/lib/python3.12/contextlib.py",
    "/opt/conda/lib/python3.11/concurrent/futures/thread.py",
    "/opt/conda/envs/a/lib/python3.11/runpy.py",
    "/usr/lib64/python3.9/asyncio/events.py",
    "/Library/Frameworks/Python.framework/Versions/3.11/lib/python3.11/threading.py",
    "/root/.local/share/uv/python/cpython-3.11.9-linux-x86_64-gnu/lib/python3.11/runpy.py",
    r"C:\Users\me\AppData\Local\Programs\Python\Python311\Lib\threading.py",
    r"C:\Users\me\miniconda3\Lib\threading.py",
    r"C:\ProgramData\Anaconda3\envs\gpu\lib\runpy.py",
    r"C:\hostedtoolcache\windows\Python\3.11.9\x64\Lib\runpy.py",
    r"C:\Users\me\AppData\Roaming\uv\python\cpython-3.11.9-windows-x86_64-none\Lib\threading.py",
    r"C:\Users\me\.pyenv\pyenv-win\versions\3.11.4\Lib\threading.py",
    "<frozen runpy>",
    "<string>",
    "<__array_function__ internals>",
]
CPP = ["??", "", "aten/src/ATen/native/Linear.cpp", "c10/cuda/CUDACachingAllocator.cu", "libtorch_cpu.so", "libc.so.6",
       "engine.h", "x.pyx"]  # fmt: skip
SITES = [
    "/workspace/train/model.py",
    "/home/torch/train.py",
    "/home/me/torch/train.py",
    "/data/torch/experiments/main.py",
    r"C:\Users\torch\project\train.py",
    "/home/me/library/python/model.py",
    "/tmp/ipykernel_4242/1234567.py",
    "<ipython-input-3-abcdef>",
    "<stdin>",
    "train.py",
    "/home/me/lib/model.py",
    "/opt/conda/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py",
    "/usr/lib/python3/dist-packages/apex/optimizers/fused_adam.py",
    r"C:\Users\me\miniconda3\Lib\site-packages\diffusers\models\unet.py",
    r"C:\Users\me\miniconda3\envs\gpu\Lib\site-packages\torchvision\models\resnet.py",
    "/home/me/oomscope/train.py",
]


def table(*stacks: list[str]) -> SiteTable:
    frames = [Frame(file, 1, "f") for stack in stacks for file in stack]
    numbers = iter(range(len(frames)))
    return SiteTable(StackTable.from_stacks(frames, [[next(numbers) for _ in stack] for stack in stacks]))


def site(*stack: str) -> str | None:
    found = table(list(stack))
    location = found.location(int(found.site_of[0]))
    return location.file if location else None


def caller(*stack: str) -> str | None:
    found = table(list(stack))
    location = found.location(int(found.caller_of[0]))
    return location.file if location else None


@pytest.mark.parametrize(
    "inner", [*TORCH, *STANDARD, *CPP, "/venv/lib/python3.12/site-packages/oomscope/recording/census/walk.py"]
)
def test_frames_of_torch_cpp_and_plumbing_are_no_sites(inner: str) -> None:
    assert site(inner) is None
    assert site(inner, "/workspace/train/model.py") == "/workspace/train/model.py"


@pytest.mark.parametrize("file", SITES)
def test_model_code_is_a_site_wherever_it_lies(file: str) -> None:
    assert site("??", TORCH[0], file, "/workspace/train/main.py") == file


@pytest.mark.parametrize("file", TORCH)
def test_torch_is_known(file: str) -> None:
    assert is_torch(Frame(file, 1, "f"))


@pytest.mark.parametrize("file", CPP)
def test_cpp_is_known(file: str) -> None:
    assert is_cpp(Frame(file, 0, "f"))


def test_the_caller_is_the_readers_own_code() -> None:
    library, own = SITES[11], "/workspace/train/train.py"
    assert (site(TORCH[0], library, own), caller(TORCH[0], library, own)) == (library, own)
    assert caller(TORCH[0], library) is None
    assert (site(own), caller(own)) == (own, own)


def test_stacks_without_a_site_have_none() -> None:
    found = table([TORCH[0], "<frozen runpy>"], [], ["??"], ["a.py"])
    assert found.site_of.tolist()[:3] == [NO_LOCATION] * 3
    assert found.location(NO_LOCATION) is None
    looked_up = found.sites(np.array([NO_STACK, 3, 0], np.int32))
    assert looked_up[0] == looked_up[2] == NO_LOCATION
    assert found.location(int(looked_up[1])).file == "a.py"  # type: ignore[union-attr]


def test_no_stacks_at_all() -> None:
    found = SiteTable(StackTable.from_stacks([], []))
    assert found.sites(np.array([NO_STACK, NO_STACK], np.int32)).tolist() == [NO_LOCATION] * 2
    assert not found.has_cpp


def test_equal_lines_are_one_site_whatever_the_stack() -> None:
    found = table(["a.py", "x.py"], ["a.py", "y.py"])
    assert found.site_of[0] == found.site_of[1]


def test_frames_that_were_never_resolved_are_not_shown() -> None:
    stacks = StackTable.from_stacks([Frame("??", 0, "x"), Frame("a.py", 3, "f"), Frame("k.cpp", 0, "g")], [[0, 1, 2]])
    assert stack_text(stacks, 0) == ("a.py:3 f", "k.cpp:0 g")
    assert SiteTable(stacks).has_cpp
