"""TensorFlow, from 1.0 on."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from oomscope.messages.families.wording import Wording, with_exact, with_figures
from oomscope.messages.figures import exact
from oomscope.messages.records import Reading

ANCHORS = (
    b"when allocating tensor", b"ran out of memory", b"failed to allocate", b"dst tensor is not",
    b"% of free system memory", b"maxinuse:", b"% of system memory", b"out_of_memory", b"exhaustederror: oom",
    b"op_requires failed",
)  # fmt: skip

_ITEM = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "int32": 4, "int64": 8, "int16": 2, "int8": 1, "uint8": 1,
    "bool": 1, "complex64": 8, "complex128": 16, "uint16": 2, "uint32": 4, "uint64": 8,
}  # fmt: skip
"""Bytes of one element, by TensorFlow's names of types."""


def _on_device(reading: Reading, match: re.Match[str]) -> Reading:
    """Where only its operation's device is told, it is there."""
    return replace(reading, device=int(match["node"][:6])) if match["node"] else reading


_OF_NODE = re.compile(r"\[\[(?:\{\{)?node:?[^\[\]=]{1,200}=(?P<op>\w{1,40})\[T=DT_(?P<type>\w+?),", re.IGNORECASE)
"""The type that an operation works in, where the line before does not name that of the tensor."""
_OF_ANOTHER_TYPE = {
    "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "ArgMax", "ArgMin", "Where", "Shape", "Size",
    "IsNan", "IsInf", "IsFinite", "TopK", "TopKV2", "Bucketize", "Unique",
}  # fmt: skip
"""What they make may be flags or places instead."""


def _of_shape(reading: Reading, match: re.Match[str]) -> Reading:
    """The size of a tensor is that of its shape."""
    reading = _on_device(reading, match)
    node = _OF_NODE.match(match.string, match.end("shape")) if match["shape"] else None
    named = "" if node is None or node["op"] in _OF_ANOTHER_TYPE else node["type"].lower()
    item = _ITEM.get(match["type"] or named)
    if item is None or match["shape"] is None:
        return reading
    numbers = [int(one[:18]) for one in re.findall(r"\d+", match["shape"])]
    return with_figures(reading, {"requested": exact(math.prod(numbers) * item)})


_IN_JAX = re.compile(r"external/(?:xla|org_tensorflow)/[\w./]{1,100}:\d+\]?(?:Allocator\([\w]*\)?)?\Z")


def _whose(reading: Reading, match: re.Match[str]) -> Reading:
    """JAX has the same allocator, in the copy of XLA that it is built with."""
    reading = with_exact(reading, match)
    if _IN_JAX.search(match.string, max(0, match.start() - 160), match.start()):
        return replace(reading, kind="jax", wording="jax.tried")
    return reading


def _limited(reading: Reading, match: re.Match[str]) -> Reading:
    """A limit of 0 is none."""
    del match
    if "allowed" not in reading.figures or reading.figures["allowed"].value:
        return reading
    return replace(reading, figures={name: one for name, one in reading.figures.items() if name != "allowed"})


STATS = "tensorflow.stats"
"""What the allocator holds; it is printed right before the failure that it belongs to."""

WORDINGS = (
    Wording(
        "tensorflow",
        "tensorflow.tensor",
        "whenallocatingtensor",
        r"""(?: OOM when allocating tensor
              | when allocating tensor (?= (?: of | with) shape \[ [\d,]+ \] and type \w+ on /job))
            (?: of shape | with shape)? (?P<shape> \[ [\d,]* \])?
            (?: and type (?P<type> float | double | half | bfloat16 | u?int\d{1,2} | bool | complex\d{2,3} | string))?
            (?: on /job: [\w./:]{0,80}? (?: device: | /) (?: GPU | DML | XPU) : (?P<device>\d+)
              | \[\[ (?: \{\{)? node .{0,300}? _device= \\? ["'] /job: [\w./:]{0,80}? GPU: (?P<node>\d+) )?""",
        finish=_of_shape,
    ),
    Wording(
        "tensorflow",
        "tensorflow.allocator",
        "ranoutofmemorytrying",
        r"""(?: Allocator \( (?: GPU_ (?P<device>\d+) _bfc | \w+) \))? ran out of memory trying to allocate
            (?: <requested:letter> (?: \( rounded to (?P<exactly>\d+) \) )?
              | (?= [^.]{0,12} \. The caller indicates that this is not a failure) )""",
        finish=_whose,
    ),
    Wording(
        "tensorflow",
        "tensorflow.allocator",
        "ranoutofmemorywhen",
        r"EigenAllocator for GPU ran out of memory when allocating <requested:bytes>",
    ),
    Wording(
        "tensorflow",
        "tensorflow.driver",
        "fromdevice:",
        r"""failed to allocate <requested:letter> (?: \( (?P<exactly>\d+) bytes \) )? from device:
            (?: CUDA_ERROR_OUT_OF_MEMORY (?: : out of memory)? | HIP_?Error\w* (?: \(\d+\))?)""",
        finish=_whose,
    ),
    Wording(
        "tensorflow",
        "tensorflow.tensor",
        "failedtoallocatememory",
        r"""failed to allocate memory \[Op: \w{1,60} \]?
          | (?: op_kernel\.cc: \d+ \] | \(\d\)) (?: RESOURCE_EXHAUSTED | Resource exhausted) :
            failed to allocate memory""",
    ),
    Wording(
        "tensorflow",
        "tensorflow.tensor",
        "exhausted",
        r"OP_REQUIRES failed at \w{1,60} \.cc : \d+ : (?: RESOURCE_EXHAUSTED | Resource exhausted) (?! : [a-z])",
    ),
    Wording(
        "tensorflow",
        STATS,
        "stats:limit:",
        r"Stats: Limit: <allowed:bytes> InUse: <allocated:bytes>",
        finish=_limited,
    ),
    Wording("tensorflow", "tensorflow.tensor", "exhaustederror:oom", r"ResourceExhaustedError : OOM (?! when)"),
    Wording(
        "tensorflow",
        "tensorflow.copy",
        "dsttensorisnot",
        r"""(?: to /job: [\w./:]{0,80}? GPU: (?P<device>\d+) in order to run \w{1,60}? :)?
            Dst tensor is not (?: copied | initialized) \.?
            (?: \[\[ (?: \{\{)? node .{0,300}? _device= \\? ["'] /job: [\w./:]{0,80}? GPU: (?P<node>\d+) )?""",
        finish=_on_device,
    ),
    Wording(
        "other",
        "other.warning",
        "systemmemory",
        r"Allocation of <requested:bytes> exceeds 10% of (?: free)? system memory",
    ),
)
