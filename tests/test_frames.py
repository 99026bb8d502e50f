"""Whose code a frame is, told from its file name."""

from __future__ import annotations

import pytest

from oomscope.model import FrameKind, frame_kind, package_path, standard_path
from oomscope.redaction.aliases import Aliases
from tests.samples import SAMPLES, sample
from tests.shared import captures, needs_shared, public, shared_snapshot

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
    "/home/me/src/torch_npu/torch_npu/npu/memory.py",
    "/home/me/src/triton/python/triton/runtime/jit.py",
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
    "/home/me/.pyenv/versions/3.11.4/lib/python3.11/threading.py",
    "/opt/pypy/lib/pypy3.10/threading.py",
    "/Library/Frameworks/Python.framework/Versions/3.11/lib/python3.11/threading.py",
    "/root/.local/share/uv/python/cpython-3.11.9-linux-x86_64-gnu/lib/python3.11/runpy.py",
    r"C:\Users\me\AppData\Local\Programs\Python\Python311\Lib\threading.py",
    r"C:\Users\me\miniconda3\Lib\threading.py",
    r"C:\ProgramData\Anaconda3\envs\gpu\lib\runpy.py",
    r"C:\hostedtoolcache\windows\Python\3.11.9\x64\Lib\runpy.py",
    r"C:\Users\me\AppData\Roaming\uv\python\cpython-3.11.9-windows-x86_64-none\Lib\threading.py",
    r"C:\Users\me\.pyenv\pyenv-win\versions\3.11.4\Lib\threading.py",
    r"C:\tools\python311.zip\threading.py",
]
PLUMBING = ["<frozen runpy>", "<string>", "<__array_function__ internals>", "<attrs generated init pkg.Config>"]
CPP = [
    "??", "", "aten/src/ATen/native/Linear.cpp", "c10/cuda/CUDACachingAllocator.cu", "libtorch_cpu.so", "libc.so.6",
    "engine.h", "x.pyx", "k.cpp:12", "thread48.o", r"C:\torch\lib\torch_cuda.dll", "<unknown file>", "Kernels.mm",
    "/usr/bin/python3.11", "../sysdeps/unix/sysv/linux/x86_64/clone3.S", "./Include/internal/pycore_ceval.h",
]  # fmt: skip
RECORDER = ["/venv/lib/python3.12/site-packages/oomscope/recording/census/walk.py"]
LIBRARY = [
    "/opt/conda/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py",
    "/usr/lib/python3/dist-packages/apex/optimizers/fused_adam.py",
    r"C:\Users\me\miniconda3\Lib\site-packages\diffusers\models\unet.py",
    r"C:\Users\me\miniconda3\envs\gpu\Lib\site-packages\torchvision\models\resnet.py",
    "/venv/lib/python3.12/site-packages/torch_geometric/nn/conv.py",
]
DOWNLOADED = [
    "/root/.cache/torch/hub/facebookresearch_dinov2_main/dinov2/models/vision_transformer.py",
    "/root/.cache/huggingface/modules/transformers_modules/org/model/modeling.py",
    "/tmp/__main___ReferencePooling_propagate_13ugjkyw.py",
]
WRITTEN = DOWNLOADED[-1]
OWN = [
    "/workspace/train/model.py",
    "/home/torch/train.py",
    "/home/me/torch/train.py",
    "/data/torch/experiments/main.py",
    "/home/me/pytorch/torch_experiments/train.py",
    "/home/me/mytorch/optim/sgd.py",
    r"C:\Users\torch\project\train.py",
    "/home/me/library/python/model.py",
    "/home/me/python3/train.py",
    "/tmp/ipykernel_4242/1234567.py",
    "<ipython-input-3-abcdef>",
    "<stdin>",
    "train.py",
    "/home/me/lib/model.py",
    "/home/me/oomscope/train.py",
]
KINDS = {
    FrameKind.CPP: CPP, FrameKind.PLUMBING: PLUMBING, FrameKind.STANDARD: STANDARD, FrameKind.TORCH: TORCH,
    FrameKind.OOMSCOPE: RECORDER, FrameKind.LIBRARY: [*LIBRARY, *DOWNLOADED], FrameKind.OWN: OWN,
}  # fmt: skip


@pytest.mark.parametrize(("kind", "file"), [(kind, file) for kind, files in KINDS.items() for file in files])
def test_whose_code_a_file_is(kind: FrameKind, file: str):
    assert frame_kind(file) is kind


@pytest.mark.parametrize(("kind", "file"), [(kind, file) for kind, files in KINDS.items() for file in files])
def test_a_redacted_file_is_of_the_same_kind(kind: FrameKind, file: str):
    assert frame_kind(Aliases().code(file, "f", 1)[0]) is kind


def test_files_of_libraries_are_known_by_their_package():
    assert package_path(TORCH[0]) == package_path("/src/pytorch/torch/nn/modules/linear.py")
    assert package_path(r"C:\a\Lib\site-packages\torch\optim\adam.py") == "torch/optim/adam.py"
    assert package_path(LIBRARY[0]) == "transformers/models/llama/modeling_llama.py"
    assert {package_path(file) for file in (*OWN, *STANDARD, *DOWNLOADED) if file != WRITTEN} == {None}


def test_what_a_library_writes_anew_in_every_process_is_known_without_the_part_that_chance_has_chosen():
    assert package_path(WRITTEN) == package_path("/run/user/__main___ReferencePooling_propagate_zz7_w0a1.py")
    assert package_path(WRITTEN) == "__main___ReferencePooling_propagate.py"
    assert "ReferencePooling" not in Aliases().code(WRITTEN, "f", 1)[0]


def test_files_of_the_standard_library_are_known_by_their_version():
    assert standard_path(STANDARD[0]) == "python3.10/threading.py"
    assert standard_path(r"C:\Users\me\miniconda3\Lib\threading.py") == "Lib/threading.py"
    assert {standard_path(file) for file in (*OWN, *TORCH, *LIBRARY)} == {None}


@needs_shared
@pytest.mark.parametrize("name", [*captures(), *public()])
def test_redaction_keeps_the_kind_of_every_frame_of_real_captures(name: str):
    aliases = Aliases()
    for frame in shared_snapshot(name).stacks.frames:
        assert frame_kind(aliases.code(*frame[:3:2], 1)[0]) is frame_kind(frame.filename), frame.filename


@pytest.mark.parametrize("name", SAMPLES)
def test_redaction_keeps_the_kind_of_every_frame_of_the_samples(name: str):
    aliases = Aliases()
    for frame in sample(name).stacks.frames:
        assert frame_kind(aliases.code(*frame[:3:2], 1)[0]) is frame_kind(frame.filename), frame.filename
