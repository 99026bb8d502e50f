"""The driver and its runtimes: an error code without the figures of an allocator."""

from __future__ import annotations

import re
from dataclasses import replace

from oomscope.messages.families.wording import Wording, compiled, with_figures
from oomscope.messages.figures import parse_figure
from oomscope.messages.records import Reading

ANCHORS = (
    b"out of memory", b"out-of-memory", b"out_of_memory", b"errormemoryallocation", b"outofmemory", b"error_out_of_",
    b"cl_out_of_resources", b"cl_mem_object_allocation", b"of gpu memory", b"unable to allocate",
    b"failed to allocate", b"alloc_failed", b"halmemalloc", b"curesult error", b"out_of_device_memory",
    b"out_of_resources", b"could not be allocated", b"outofmemory error", b"nvmapmemalloc", b"to cudamalloc",
    b"cuda context", b"alloc fail type", b"cufft_alloc", b"cufft_internal_error", b"cuffterror(",
    b"error in allocate", b"erroroutofmemory", b"object allocation failure", b"nrt_",
    b"allocator_fail", b"allocation_fail", b"to alloc device memory", b"clcreatebuffer", b"opencl buffer",
    b"aclrtmalloc", b"cudasuccess (2 vs", b"fail to allocate memory",
    b"vkallocatememory",
)  # fmt: skip

_REFUSED = r"""
    (?: CUDA | HIP | ROCm | SYCL | NPU | MUSA) (?: driver | runtime)? error :? (?: \(? \d+ \)? :?)? ['"]? out of memory
  | (?: CUDA | HIP) error \d* (?: in | at) [^;]{1,160}? (?: : | - | , | \d \)) (?: \d+ \()? out of memory
  | (?: CUDA | HIP) failed with error out of memory
  | out of memory (?: in | at | from | during | when calling)? (?-i: (?: cu | cuda | hip | hsa | ze) [A-Z]) \w{2,40} \(
  | [A-Z]{2,20} (?: _STATUS)? _ALLOC (?: ATOR | ATION)? _FAIL (?: ED | URE)
  | Cuda (?: Runtime | Driver)? (?: Error)? \(? (?: code)? :? \(? out of memory \)?
  | (?: cuda | hip | musa) Malloc \w{0,20}? (?: retry)? failed :? out of memory
  | Error while calling cuda \w{2,40} \( .{0,260}? code: 2, reason: out of memory
  | cu (?: Mem | Ctx | Device | Module | Stream) \w{0,40} failed :? out of memory
  | cuda (?: Success | Malloc | GetDevice | SetDevice | Free | MemGetInfo | Stream) \w{0,40} .{0,60}? :? (?: CUDA:)?
    out of memory
  | (?: error | error code | failure | status | code) [=:]? 2 \)? [:=]? '? out of memory
  | (?: cuda | hip) Error (?: MemoryAllocation | OutOfMemory)
  | [A-Z]{2,12} _ERROR_OUT_OF_MEMORY
  | CUFFTError \( code 2 (?! \d)
  | CL_ (?: OUT_OF_RESOURCES | MEM_OBJECT_ALLOCATION_FAILURE)
  | (?<! [a-z]) Memory Object Allocation Failure
  | (?: clCreateBuffer | create OpenCL buffer) [^.;]{0,40}? - (?: 4 | 5 | 6 | 61) (?! [\d.])
  | (?: PI | UR_RESULT | ZE_RESULT | HSA_STATUS) _ERROR_OUT_OF_ (?: RESOURCES | DEVICE_MEMORY)
  | OutOfMemory Error in \w{1,40} : \d
  | out_of_memory: CUDA error at
  | NvMapMem (?: Alloc | Handle) \w{0,30} (?: : (?: \d+)? error 12 | \W? fail)
  | Error out of memory at line \d+ in file
  | out of memory [^.;]{0,100}? [\w/.-]{1,120} \.cuh? (?: \W{0,3} line | [:(,] )? \d+
  | \.cuh? (?: [:(,] | \W{0,3} line) \d+ [^.;]{0,60}? out of memory
"""

NEAR_CARD = Wording(
    "cuda-driver",
    "driver.near",
    "outofmemory|out-of-memory",
    r"""(?<! PYTORCH_) (?: CUDA | cuMem | GPU | Vulkan | nvinfer | \[TRT\] | hipMalloc | thrust | parallel_for)
        [^.,;=]{0,60}? (?<! 避免) (?<! 防止) (?: out of memory (?! Error) | out-of-memory)
      | (?: GPU | device) OutOfMemoryError""",
)
"""Where no wording fits, but the card is named right before; people say so too, of a failure that a program told."""


def _on_card(reading: Reading, match: re.Match[str]) -> Reading:
    """The device that the refused call names, where the line above names none."""
    if reading.device is not None or match["card"] is None:
        return reading
    return replace(reading, device=int(match["card"][:6]))


_SIZE = compiled(r"(?: failed to | unable to | cannot | could not) allocate (?: an?)? <requested> (?! of)")
_BESIDE = 100
"""Characters before and after a code in which its program may say how much it asked for."""


def _with_size(reading: Reading, match: re.Match[str]) -> Reading:
    """The size beside the code, where one is told in words."""
    start, end = max(0, match.start() - _BESIDE), match.end() + _BESIDE
    sizes = {one["requested"] for one in _SIZE.finditer(match.string, start, end)}
    return with_figures(reading, {"requested": parse_figure(sizes.pop())}) if len(sizes) == 1 else reading


WORDINGS = (
    Wording(
        "cuda-driver",
        "driver.refused",
        "cl_out_of_resources|cl_mem_object_allocation",
        r"""CL_ (?: OUT_OF_RESOURCES | MEM_OBJECT_ALLOCATION_FAILURE) error executing CL_ \w{1,60}? on .{1,60}?
            \( Device (?P<device>\d{1,3}) \)
          | clCreateBuffer \( [^()]{1,80}? , <requested:bytes> , [^()]{0,80}? \) .{0,120}?
            CL_ (?: OUT_OF_RESOURCES | MEM_OBJECT_ALLOCATION_FAILURE)""",
    ),
    Wording(
        "cuda-driver",
        "driver.torch",
        "error:outofmemory",
        r"(?: CUDA | HIP) (?: driver)? error: out of memory (?! current device)",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "failed:outofmemory|aclrtmalloc",
        r"""allocating <requested> on device (?P<device>\d+) :
            (?: (?: cuda | hip | musa) Malloc failed: out of memory | aclrt Malloc failed)""",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "totalmemoryreported",
        r"""(?: CUDA device ordinal (?P<device>\d+) : .{0,40}?)? failed call to cu\w{1,60} : CUDA_ERROR_OUT_OF_MEMORY
            (?: : out of memory)? ; total memory reported: <total:bytes>""",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "bytesofdevicememory",
        r"""Error allocating <requested:bytes> bytes of device memory \( [^()]{0,60}? out of memory \) \.?
            (?: Driver report <free:bytes> bytes free and <total:bytes> bytes total)?""",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "bytesunifiedmemory",
        r"""failed to alloc <requested:bytes> bytes unified memory; result: CUDA_ERROR_OUT_OF_MEMORY
            (?: : out of memory)?""",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "requestedamountof",
        r"""Requested amount of (?: GPU)? memory
            \( <requested:bytes> by (?: tes \) (?: could not be allocated)? | [a-z]{0,3} \Z)""",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "availablefreemem:",
        r"HSA_STATUS_ERROR_OUT_OF_RESOURCES .{0,260}? Available Free mem : <free>",
    ),
    Wording(
        "cuda-driver",
        "driver.counting",
        "cudagetdevicecount",
        r"cudaGetDeviceCount \(\) .{0,160}? Error 2: out of memory",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "halmemallocfailed",
        r"halMemAlloc failed: device_id= (?P<device>\d+) , size= <requested:bytes>",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "cudaerror(failedtoallocate",
        r"""CUDA error \(failed to allocate <requested:bytes> bytes\) at: .{1,240}? cudaErrorMemoryAllocation
            (?: out of memory)?""",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "toallocdevicememory",
        r"""Failed to alloc DEVICE memory: <requested:bytes> (?! \d)
            (?: .{0,360}? on ND (?P<device>\d+) : NC \d+ , current utilization: \W? total: <allocated>)?""",
    ),
    Wording("cuda-driver", "driver.refused", "nrt_", r"nrt_ [a-z_]{1,40} status=4 (?! \d)"),
    Wording(
        "cuda-driver",
        "driver.refused",
        "tocudamalloc|tohipmalloc",
        r"""failed to (?: cuda | hip) Malloc <requested:bytes> bytes (?: on device (?P<device>\d+))?
            \( error 2 out of memory""",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "allocfailtype",
        r"""alloc fail type \w{1,60}? dev (?P<device>\d+) space .{1,80}? size <requested:bytes> bytes
            \( cudaMalloc error out of memory""",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "cudaerrorinallocate:2",
        r"Cuda Error in allocate: 2 (?! \d) (?: \(out of memory\))?",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "erroroutofmemory:theapicall",
        r"""ErrorOutOfMemory: The API call failed because it was unable to allocate enough memory
            (?: to perform the requested operation)?""",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "cudacontext",
        r"(?: creat (?: e | ing)) (?: a)? CUDA context [^.;]{0,30}? : 0x0{0,7} 2 (?! [\da-f])",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "toallocatememory",
        r"Cuda Device MemoryAllocator fail to allocate memory <requested:bytes> bytes !* Result = 2 (?! \d)",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "failedwithoutofmemory(2)",
        r"CUDA (?: RT | runtime | driver)? call \W? \w{2,40} \( .{0,160}? failed with out of memory \(2\)",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "cudaprogram.cu:",
        r"""(?: Allocating DAG \( <requested:any> \) GB .{0,60}? )? CUDA error in CudaProgram\.cu: \d+ : out of memory
            (?: \(2\) )? (?: GPU (?P<device>\d{1,3}) : CUDA memory: <total> total, <free> free)?""",
        unit="GB",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "vkallocatememory",
        r"vkAllocateMemory .{0,160}? (?: ErrCode | error | result | returned | code) [=:]? -2 (?! [\d.])",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "cudasuccess(2vs",
        r"(?: cuda \w{2,40} [^;]{0,80}? )? == cudaSuccess \( 2 vs\.? 0 \) (?: :? out of memory)?",
    ),
    Wording("cuda-driver", "driver.refused", "207001", r"aclrt Malloc \w{0,20} [^;]{0,40}? 207001"),
    Wording("cuda-driver", "driver.refused", "curesulterror", r"CUresult error result=2 (?!\d)"),
    Wording(
        "cuda-driver",
        "driver.refused",
        "el0004",
        r"""(?: Device: (?P<device>\d+) , RankID: -?\d+ \) .{0,240}? )? EL0004 \)? :
            (?: .{0,80}? Failed to allocate memory)?
            (?: .{0,280}? (?: DeviceMemory \] with info \[ | rtMalloc fail, [^\[\]]{0,60}? ) size: <requested:bytes>
                (?: , device_id: (?P<card>\d+))? )?""",
        finish=_on_card,
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "errorcode2:outofmemory",
        r"""Error Code 2: out of memory
            (?: \( (?: Requested size was <requested:bytes> bytes | no further information) )?""",
    ),
    Wording(
        "cuda-driver",
        "driver.refused",
        "requestedmemory:",
        r"""cudaErrorMemoryAllocation .{0,40}? Free memory: <free:any> -? Requested memory: <requested:any>""",
    ),
    Wording("cuda-driver", "driver.refused", "errormemoryallocation", r"(?: cuda | hip) ErrorMemoryAllocation"),
    Wording(
        "cuda-driver",
        "driver.refused",
        "outofmemory|out_of_memory|erroroutof|memoryallocation|error_out_of_|out_of_resources|alloc_failed|"
        "allocation_failure|allocationfailure|clcreatebuffer|openclbuffer|"
        "nvmapmem|allocator_fail|allocation_fail|cuffterror(code",
        rf"(?: {_REFUSED} ) (?: (?: current device: | ; GPU=) (?P<device>\d+))?",
        finish=_with_size,
    ),
)
