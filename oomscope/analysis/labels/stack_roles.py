"""What a call stack tells about an allocation: which part of a training program made it.

Only torch's own files, those of well-known libraries around it and PyTorch's conventions for names (``forward``,
``step``, ``kv_cache``) are known here. A stack whose frames say none of it stays `Role.NEUTRAL`; what happened around
the allocation then decides (see `oomscope.analysis.labels.phases`).
"""

from __future__ import annotations

import re
from enum import IntEnum, IntFlag

import numpy as np

from oomscope.analysis.said.tracebacks import original_frame
from oomscope.frozen import frozen
from oomscope.model import Frame, FrameKind, IntArray, StackTable, UInt8Array, frame_kind, package_path
from oomscope.model.arrays import StackArray


class Role(IntEnum):
    """The part of the program that a stack belongs to."""

    NEUTRAL = 0
    """Python frames, but none that tells."""
    UNFRAMED = 1
    """No Python frame: the stack was not recorded, or a C++ thread of the autograd engine ran alone."""
    LOAD = 2
    """Making, moving, copying or loading a model."""
    FORWARD = 3
    BACKWARD = 4
    OPTIMIZER = 5


class Mark(IntFlag):
    """Finer signs on a stack."""

    NONE = 0
    COMMUNICATION = 1
    """The allocation itself is made by DDP, FSDP or a collective: a bucket or a gathered parameter."""
    STATE = 2
    """The optimizer is making or loading its state."""
    LOSS = 4
    """A loss over logits, or their softmax."""
    ATTENTION = 8
    CACHE = 16
    """A cache of keys and values."""
    LINEAR = 32
    """A linear or convolution layer, whose output is no larger than batch × features."""
    ZERO_GRAD = 64
    """Gradients are dropped."""
    CONSTRUCTOR = 128
    """Only a constructor says that this is a model."""
    CONCATENATION = 256
    COMPILED = 512
    """Code that inductor generated."""
    EXPLICIT = 1024
    """The backward is known from frames, not from their absence."""
    UPDATE = 2048
    """One of torch's optimizers is changing its parameters, which makes no state."""
    GRADIENT_BUFFER = 4096
    """The innermost frame makes one buffer for many gradients."""
    NESTED = 8192
    """A constructor within a constructor, as the layers of a model are made."""
    REPLICA = 16384
    """`DataParallel` copies the model to another device, several parameters in one block."""
    PRODUCT = 32768
    """A softmax or a product of batches of matrices, of which attention consists, as C++ frames name them."""
    WORKSPACE = 65536
    """PyTorch makes a workspace for cuBLAS, as C++ frames say."""
    COMPUTED = 131072
    """The result of arithmetic or of a concatenation, as C++ frames say; a copy or a new tensor is none."""
    CAST = 262144
    """Autocast's copy in another precision, as C++ frames say."""


@frozen(eq=False)
class StackRoles:
    """Roles and marks of every stack; the last row is that of `NO_STACK`, so both columns can be indexed with -1.

    Attributes:
        role: uint8[stacks + 1], `Role` numbers.
        mark: int64[stacks + 1], `Mark` bits.
        apply_line: int64[stacks + 1], the line that the innermost `Module._apply` is at; -1 where there is none.
        site_line: int64[stacks + 1], the line of the innermost Python frame; -1 where there is none.
        recursive_line: the line where `Module._apply` calls itself for children; -1 where that was not seen.
    """

    role: UInt8Array
    mark: IntArray
    apply_line: IntArray
    site_line: IntArray
    recursive_line: int = -1


class _Sign(IntFlag):
    """What one frame says."""

    NONE = 0
    CPP = 1
    BACKWARD = 2
    """Nothing but a backward runs under it."""
    ENGINE = 4
    """The outermost Python frame of a thread of the autograd engine."""
    OPTIMIZER = 8
    LOAD = 16
    FORWARD = 32
    CONSTRUCTOR = 64
    APPLY = 128


_CPP_BACKWARD = re.compile(r"autograd::Engine::|THPEngine_run_backward|Backward\d*::apply|CompiledBackward")
_BACKWARD = {
    "torch/autograd/__init__.py": {"backward", "grad", "_make_grads"},
    "torch/_tensor.py": {"backward"},
    "torch/autograd/graph.py": {"_engine_run_backward"},
}


def _files(*patterns: str) -> re.Pattern[str]:
    """Finds a file by its folders and name; ``mytorch/optim/`` is not ``torch/optim/``."""
    return re.compile(rf"(?<![^/])(?:{'|'.join(patterns)})")


_OPTIMIZER_FILE = _files(
    r"torch/optim/(?!swa_utils|lr_scheduler)", "apex/optimizers/", "bitsandbytes/optim/",
    "deepspeed/ops/(?:adam|lamb|lion)/", "torch/nn/utils/clip_grad", r"transformers/optimization\.py",
    "torch/distributed/optim/", "torch_npu/optim/", "megatron/core/optimizer/",
)  # fmt: skip
_SCALER = _files(r"torch/(?:cuda/)?amp/grad_scaler\.py$")
_OPTIMIZER_NAME = re.compile(r"optim", re.IGNORECASE)
_STATE_NAME = re.compile(r"^_?init(_|$)|_init_group|_init_state|load_state_dict|_process_value|_get_state|setup_state")
_UPDATE_NAME = re.compile(r"_(?:multi_tensor|single_tensor|fused)_")
"""How torch's optimizers call what changes the parameters. SGD makes its momentum there; all others make their state in
``_init_group``."""
_GRADIENT_BUFFERS = _files(r"megatron/.*(?:param_and_grad_buffer|grad_buffer|model/distributed)\.py")
_LOAD_FILE = _files(
    r"torch/nn/init\.py", r"torch/serialization\.py", "safetensors/", r"torch/nn/parameter\.py",
    r"accelerate/utils/modeling\.py", r"accelerate/big_modeling\.py", r"torch/optim/swa_utils\.py", "model_loader/",
    r"core_model_loading\.py", "torch/jit/_serialization", "torch/distributed/checkpoint/",
)  # fmt: skip
_LOAD_NAME = re.compile(
    r"^(_apply|load_state_dict|_load_from_state_dict|from_pretrained|_load_pretrained_model|reset_parameters"
    r"|_load_state_dict_into_meta_model|__deepcopy__|deepcopy|_reconstruct|_deepcopy_\w+|load_model|load_weights"
    r"|load_checkpoint|_init_flat_param\w*|flatten_tensors\w*|_init_sharded_param|_get_shard|_init_weights"
    r"|create_parameter|init_weights|_init_param_handle\w*|flatten_parameters|_init_flat_weights)$"
)
_REPLICATION = ("torch/nn/parallel/comm.py", "broadcast_coalesced")
"""Nothing but `torch.nn.parallel.replicate` and its like calls it, with the tensors of a module."""
_COMMUNICATION_FILE = _files(
    r"torch/nn/parallel/(?:distributed|comm)\.py", "torch/distributed/", "deepspeed/(?:comm|runtime)/"
)
_FORWARD_FILE = _files(
    r"torch/nn/functional\.py", r"torch/nn/modules/(?!module\.py)", "torch/nn/attention/",
    r"torch/utils/checkpoint\.py", r"torch/_inductor/output_code\.py", r"torch/autograd/function\.py",
    "transformers/models/", "flash_attn/", "xformers/", "torchinductor_", "torch/_functorch/",
)  # fmt: skip
_NOT_FORWARD = {"__init__", "state_dict", "load_state_dict", "train", "eval"}
_CALL = {"_call_impl", "_wrapped_call_impl", "_slow_forward"}
_LOSS = re.compile(r"cross_entropy|log_softmax|nll_loss|CausalLMLoss|kl_div|CrossEntropy|logsumexp")
_CPP_ATTENTION = re.compile(r"(?<!log_)softmax|scaled_dot_product|baddbmm|\bbmm")
"""The operators that C++ frames name."""
_CPP_COMPUTED = re.compile(r"at::_ops::(?:cat|(?:add|sub|mul|div)_Tensor)::")
_CPP_WORKSPACE = re.compile(r"getNewWorkspace|getNewCUDABlasLtWorkspace|getCUDABlasLtWorkspace")
_ATTENTION = re.compile(r"attn|attention|attend|(?<!log_)softmax|scores$", re.IGNORECASE)
_CACHE = re.compile(
    r"(?<![a-z])kv_?cache|cache_utils\.py|past_key_value|key_value_cache|kv_buffer|cache_engine"
    r"|continuous_batching/cache\.py|mem_cache/memory_pool\.py"
)
_LINEAR = _files(
    r"torch/nn/modules/(?:linear|conv)\.py$",
    r"torch_geometric/nn/dense/linear\.py$",
    r"transformers/pytorch_utils\.py$",
)
"""Libraries have linear layers of their own; that of GPT-2 in transformers is called ``Conv1D``."""
_COMPILED = _files("torchinductor_", "torch/_inductor/", "torch/_dynamo/")
_INDUCTOR = "torchinductor_/"
"""Stands for what torch.compile writes, wherever its cache lies."""
_ENGINE_FILE = _files(
    r"torch/autograd/(?:function|graph)\.py", r"torch/utils/(?:checkpoint|hooks)\.py", "torch/distributed/"
)
_ENGINE_NAME = re.compile(r"hook|backward|unpack")


_INNERMOST = int(Mark.COMMUNICATION | Mark.CONCATENATION | Mark.GRADIENT_BUFFER | Mark.REPLICA)
"""Marks that only the frame that allocates can bear."""


def find_roles(stacks: StackTable) -> StackRoles:
    """The role and the marks of every stack; one look at each distinct frame, the rest by columns."""
    count = len(stacks)
    role = np.full(count + 1, Role.UNFRAMED, np.uint8)
    mark = np.zeros(count + 1, np.int64)
    if not count:
        nothing = np.full(1, -1, np.int64)
        return StackRoles(role, mark, nothing, nothing)
    looked = [_look(original_frame(frame) if frame.extra else frame) for frame in stacks.frames]
    signs = np.array([int(sign) for sign, _ in looked], np.int64)[stacks.members]
    marks = np.array([int(found) for _, found in looked], np.int64)[stacks.members]
    position = np.arange(len(signs))
    lengths = np.diff(stacks.offsets)
    owner = np.repeat(np.arange(count), lengths)
    python = (signs & _Sign.CPP) == 0

    innermost = _first(position[python], owner[python], count)
    outermost = _last(position[python], owner[python], count)
    framed = innermost >= 0
    role[:count][framed] = Role.NEUTRAL

    tells = np.flatnonzero((signs & (_Sign.OPTIMIZER | _Sign.LOAD | _Sign.FORWARD)) != 0)
    first = _first(tells, owner[tells], count)
    told = first >= 0
    sign = signs[np.maximum(first, 0)]
    role[:count][told & ((sign & _Sign.FORWARD) != 0)] = Role.FORWARD
    role[:count][told & ((sign & _Sign.LOAD) != 0)] = Role.LOAD
    role[:count][told & ((sign & _Sign.OPTIMIZER) != 0)] = Role.OPTIMIZER
    # A model made directly on the device: constructors down to the allocation, and nothing else that tells.
    constructor = framed & ((signs[np.maximum(innermost, 0)] & _Sign.CONSTRUCTOR) != 0)
    constructor &= role[:count] == Role.NEUTRAL
    role[:count][constructor] = Role.LOAD

    under = np.zeros(count, np.bool_)
    under[owner[(signs & _Sign.BACKWARD) != 0]] = True
    engine = framed & ((signs[np.maximum(outermost, 0)] & _Sign.ENGINE) != 0)
    under |= engine & (role[:count] != Role.OPTIMIZER)  # a hook may step the optimizer for its own parameter
    role[:count][under] = Role.BACKWARD

    mark[:count] = _or(marks & ~_INNERMOST, owner, count)
    mark[:count][framed] |= marks[innermost[framed]] & _INNERMOST
    mark[:count][constructor] |= int(Mark.CONSTRUCTOR)
    mark[:count][np.bincount(owner, (signs & _Sign.CONSTRUCTOR) != 0, count) > 1] |= int(Mark.NESTED)
    mark[:count][under] |= int(Mark.EXPLICIT)
    apply_line, recursive_line = _apply_lines(stacks, signs, owner, count)
    site_line = np.full(count + 1, -1, np.int64)
    site_line[:count][framed] = _lines(stacks, stacks.members[innermost[framed]])
    return StackRoles(role, mark, apply_line, site_line, recursive_line)


def tells_backward(frame: Frame) -> bool:
    """Whether nothing but a backward runs under `frame`."""
    return bool(_look(frame)[0] & _Sign.BACKWARD)


def _look(frame: Frame) -> tuple[_Sign, Mark]:
    """What one frame says, for the stack and for itself."""
    name, kind = frame.name, frame_kind(frame.filename)
    if kind is FrameKind.CPP:
        mark = Mark.PRODUCT if _CPP_ATTENTION.search(name) else Mark.NONE
        mark |= Mark.COMPUTED if _CPP_COMPUTED.search(name) else Mark.NONE
        mark |= Mark.CAST if "autocast::cached_cast" in name else Mark.NONE
        mark |= Mark.WORKSPACE if _CPP_WORKSPACE.search(name) else Mark.NONE
        return (_Sign.CPP | (_Sign.BACKWARD if _CPP_BACKWARD.search(name) else _Sign.NONE)), mark
    # A library's file counts from its package on: a folder above it may bear any name.
    path = package_path(frame.filename)
    if path is None:
        path = _INDUCTOR if kind is FrameKind.TORCH else frame.filename.replace("\\", "/")
    short = name.rpartition(".")[2]
    # A thread begins with the program's own code. Where torch's comes first, C++ has called it: autograd's engine.
    engine = _Sign.ENGINE if kind is FrameKind.TORCH else _Sign.NONE
    return _sign(path, short) | engine, _mark(path, short)


def _sign(path: str, name: str) -> _Sign:
    sign = _Sign.NONE
    if name in _BACKWARD.get(path, ()):
        sign |= _Sign.BACKWARD
    if _ENGINE_FILE.search(path) or _ENGINE_NAME.search(name):
        sign |= _Sign.ENGINE
    if name == "__init__":
        sign |= _Sign.CONSTRUCTOR
    if name == "_apply" and path == "torch/nn/modules/module.py":
        sign |= _Sign.APPLY
    if _is_optimizer(path, name):
        return sign | _Sign.OPTIMIZER
    is_layer = path.startswith("torch/nn/modules/") and name == "__init__"
    if _LOAD_FILE.search(path) or _LOAD_NAME.match(name) or is_layer:
        return sign | _Sign.LOAD
    if name == "forward" or name in _CALL or (_FORWARD_FILE.search(path) and name not in _NOT_FORWARD):
        sign |= _Sign.FORWARD
    return sign


def _is_optimizer(path: str, name: str) -> bool:
    if _SCALER.search(path):
        return name != "scale"
    return bool(_OPTIMIZER_FILE.search(path)) or (name == "step" and bool(_OPTIMIZER_NAME.search(path)))


def _mark(path: str, name: str) -> Mark:
    if (path, name) == _REPLICATION:
        return Mark.REPLICA
    mark = Mark.NONE
    if _COMMUNICATION_FILE.search(path) and not _LOAD_NAME.match(name) and name not in ("forward", "_run_ddp_forward"):
        mark |= Mark.COMMUNICATION
    if _is_optimizer(path, name):
        mark |= Mark.STATE if _STATE_NAME.search(name) else Mark.NONE
        mark |= Mark.UPDATE if _UPDATE_NAME.match(name) and not path.endswith("/sgd.py") else Mark.NONE
    if name == "zero_grad":
        mark |= Mark.ZERO_GRAD
    if name == "__init__" and _GRADIENT_BUFFERS.search(path):
        mark |= Mark.GRADIENT_BUFFER
    for pattern, text, found in (
        (_LOSS, name, Mark.LOSS),
        (_ATTENTION, name, Mark.ATTENTION),
        (_CACHE, f"{path} {name}", Mark.CACHE),
        (_LINEAR, path, Mark.LINEAR),
        (_COMPILED, path, Mark.COMPILED),
    ):
        if pattern.search(text):
            mark |= found
    return mark


def _apply_lines(stacks: StackTable, signs: IntArray, owner: IntArray, count: int) -> tuple[IntArray, int]:
    """For each stack, the line of its innermost `Module._apply`, -1 where there is none; and that of the recursion."""
    line = np.full(count + 1, -1, np.int64)
    applies = np.flatnonzero((signs & _Sign.APPLY) != 0)
    if not len(applies):
        return line, -1
    lines = _lines(stacks, stacks.members[applies])
    first = _first(applies, owner[applies], count)
    is_first = first[owner[applies]] == applies
    line[owner[applies[is_first]]] = lines[is_first]
    recursive = lines[~is_first]
    return line, int(recursive.min()) if len(recursive) else -1


def _lines(stacks: StackTable, frames: StackArray) -> IntArray:
    return np.array([stacks.frames[frame].line % (1 << 31) for frame in frames.tolist()], np.int64)


def _first(position: IntArray, owner: IntArray, count: int) -> IntArray:
    """The first of ascending `position` for each owner, -1 where there is none."""
    found = np.full(count, -1, np.int64)
    found[owner[::-1]] = position[::-1]
    return found


def _last(position: IntArray, owner: IntArray, count: int) -> IntArray:
    found = np.full(count, -1, np.int64)
    found[owner] = position
    return found


def _or(bits: IntArray, owner: IntArray, count: int) -> IntArray:
    """All bits of each owner's rows together."""
    found = np.zeros(count, np.int64)
    np.bitwise_or.at(found, owner, bits)
    return found
