"""Any device that refused, whatever its brand: the code or the name of a call, or plain words that name a device.

`families/driver.py` has what CUDA, ROCm, Ascend and Neuron print; here is what needs no knowledge of a runtime.
"""

from __future__ import annotations

import re
from dataclasses import replace

from oomscope.messages.families.wording import Wording, with_figures
from oomscope.messages.figures import exact
from oomscope.messages.records import Reading

ANCHORS = (
    b"out of memory", b"out_of_device_memory", b"outofdevicememory", b"insufficient memory", b"gpu video memory",
    b"memory allocation of size", b"out of gpu memory", b"vkallocatememory", b"unable to allocate",
    b"failed to allocate", b"dev_id =", b"dev_id=", b"oom while allocating", b"no memory is available",
    b"out of gpu and", b"out of gpu resources", b"memory on device",
)  # fmt: skip

ONE_PIECE = "device.one_piece"
"""A buffer that is larger than the device makes any."""
CODE = "device.code"
"""The name of a code alone, which says neither what was asked for nor by whom."""


def _in_hex(reading: Reading, match: re.Match[str]) -> Reading:
    return with_figures(reading, {"requested": exact(int(match["hex"], 16))}) if match["hex"] else reading


def _in_one_piece(reading: Reading, match: re.Match[str]) -> Reading:
    """What is larger than any buffer may be is refused however much is free."""
    return replace(reading, wording=ONE_PIECE) if match["one_piece"] else reading


WORDINGS = (
    # llama.cpp asks for a buffer in pieces, and tells first of the piece that was refused.
    Wording(
        "cuda-driver",
        "device.refused",
        "devicememoryallocation",
        r"""Device memory allocation of size <requested:bytes> failed
            (?P<one_piece> .{0,40}? Requested buffer size exceeds device [a-z ]{1,30}? limit)?
            (?: .{0,200}? failed to allocate (?-i: [A-Z]) [A-Za-z]{1,10} (?P<device>\d{1,2})?
                buffer of size \d{1,20} )?""",
        finish=_in_one_piece,
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "bufferofsize",
        r"failed to allocate (?-i: [A-Z]) [A-Za-z]{1,10} (?P<device>\d{1,2})? buffer of size <requested:bytes>",
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "unabletoallocate",
        r"unable to allocate (?-i: [A-Z]) [A-Za-z]{1,10} (?P<device>\d{1,2}) buffer",
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "failed,dev_id=",
        r"""alloc \w{0,20} failed , dev_id = (?P<device>\d{1,3}) ,
            size = (?: 0x (?P<hex> [\da-f]{1,16}) | <requested:bytes>)""",
        finish=_in_hex,
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "insufficientmemory",
        r"""(?: execution failed: | ErrorDomain Code=8 \\? ["']) Insufficient Memory
            (?: \( 0*8 : kIOGPU\w{1,60} \) )?
          | Insufficient Memory \( 0*8 : kIOGPU\w{1,60} \)""",
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "gpuvideomemory",
        r"Could not allocate tensor with <requested:bytes> bytes \. There is not enough GPU video memory available",
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "bytesofmemoryondevice|bytesmemoryondevice",
        r"""can ['’]? (?: not | t) (?: allocate | malloc) <requested:bytes> Bytes (?: of)? memory on device
            (?P<device>\d{1,3})?""",
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "amemoryregionof",
        r"""Failed to allocate a memory region of <requested:bytes> bytes
            (?: .{0,360}? Memory info: free: <free:letter> , used: [\d.]{1,12} [KMG] , total: <total:letter>)?""",
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "toallocateabuffer:",
        r"Failed to allocate a buffer: (?: [\w/]{1,30} :)? size : <requested:bytes> bytes",
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "outofgpumemory",
        r"""(?<! run) (?<! runs) (?<! ran) (?<! running) Out of GPU memory
            (?: trying to allocate <requested> | (?= Stacktrace) | (?! \w))""",
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "outofmemory",
        r"""(?: device | GPU) error \(? \d{0,4} \)? :? out of memory
          | Error: out of memory at \[ [\w/.-]{0,160}? (?: device | gpu | cuda) [\w/.-]{0,60} : \d+""",
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "outofgpuand|outofgpuresources",
        r"out of GPU (?: and (?: shared)? host memory | resources (?! [a-z]))",
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "oomwhileallocating",
        r"(?: Metal | CUDA | HIP | OpenCL | Vulkan | GPU) OOM while allocating (?: size=)? <requested:bytes>",
    ),
    Wording(
        "cuda-driver",
        "device.refused",
        "bytes:nomemoryisavailable",
        r"Cannot allocate <requested:bytes> bytes: no memory is available",
    ),
    Wording(
        "cuda-driver", "device.refused", "vkallocatememory", r"vkAllocateMemory failed :? (?: with)? \(? -[12] (?!\d)"
    ),
    Wording(
        "cuda-driver", "device.other_code", "vkallocatememory", r"vkAllocateMemory failed :? (?: with)? \(? -\d{2,10}"
    ),
    Wording("cuda-driver", CODE, "out_of_device_memory", r"(?<! [A-Z]_) (?: [A-Z]{2,12} _){0,3} OUT_OF_DEVICE_MEMORY"),
    Wording("cuda-driver", CODE, "outofdevicememory", r"(?<! [A-Za-z]) (?: Error)? OutOfDeviceMemory"),
)
