"""CUDA's libraries: cuBLAS, cuDNN and what stands in for them on other cards."""

from __future__ import annotations

import re
from dataclasses import replace

from oomscope.messages.families.wording import Wording
from oomscope.messages.records import Reading

ANCHORS = (
    b"blas_status_", b"cublas runtime error", b"dnn_status_", b"dnn algorithm", b"find an engine", b"miopenstatus",
    b"convolution algorithm", b"algorithm failed", b"blas initialization", b"create cublas handle",
    b"the resource allocation failed", b"the library was not initialized", b"cublas error",
)  # fmt: skip


def _by_code(reading: Reading, match: re.Match[str]) -> Reading:
    """The old wording has a code in place of a status: 3, no memory was had."""
    if match["status"] is not None:
        return reading
    device = int(match["card"][:6]) if match["card"] else None
    return replace(reading, device=device, values={"status": "ALLOC_FAILED"})


WORDINGS = (
    Wording(
        "cublas",
        "cublas.status",
        "blas_status_",
        r"""(?: cu | hip | roc) blas (?: lt)? _status_ (?!success)
            (?P<status> alloc_failed | not_initialized | execution_failed | internal_error | not_supported
            | invalid_value | arch_mismatch | mapping_error | [a-z_]{4,30}? (?= when | current device | [^a-z_] | $) )
            (?: when calling `? <call:word>)? (?: (?: ; GPU= | current device: ) (?P<device>\d+))?""",
    ),
    Wording(
        "cublas",
        "cublas.status",
        "theresourceallocationfailed|thelibrarywasnot|cublaserror3",
        r"""(?: (?: CUDA | ROCm | HIP | MUSA) error: | cuBLAS error \d+ at [^;]{1,200}? : \d+ :)
            (?P<status> the resource allocation failed | the library was not initialized)
            (?: current device: (?P<device>\d+))?
          | cuBLAS error 3 at [^;]{1,200}? : \d+ (?: current device: (?P<card>\d+))?""",
        finish=_by_code,
    ),
    Wording(
        "cublas",
        "cublas.status",
        "cublasruntimeerror",
        r"cublas runtime error : (?P<status> resource allocation failed | [a-z-]{1,60}?) at",
    ),
    Wording(
        "cudnn",
        "cudnn.status",
        "cudnn_status_",
        r"""cudnn_status_ (?!success)
            (?P<status> alloc_failed | not_initialized | execution_failed | internal_error | not_supported | bad_param
            | mapping_error | [a-z_]{4,50})
            (?: ; GPU= (?P<device>\d+))?
            (?: .{0,80}? Memory usage: <free:bytes> bytes free , <total:bytes> bytes total)?""",
    ),
    Wording("cublas", "cublas.status", "blas_status_success(", r"cublas_status_success \( \d+ vs \. 0 \)"),
    Wording(
        "cublas",
        "cublas.status",
        "cublashandle:the",
        r"failed to create cublas handle: the (?P<status> [a-z-]{4,60}? failed | [a-z-]{4,60}? error)",
    ),
    Wording("cublas", "cublas.status", "blasinitializationfailed", r"cublas initialization failed"),
    Wording("cudnn", "cudnn.status", "dnn_status_success(", r"cudnn_status_success \( \d+ vs \. 0 \)"),
    Wording("cudnn", "cudnn.status", "algorithmfailed", r"(?-i: cudnn [A-Z]) \w{3,60}? Algorithm failed"),
    Wording(
        "cudnn",
        "cudnn.status",
        "miopenstatus",
        r"miopenStatus (?P<status> AllocFailed | InternalError | UnknownError | NotInitialized)",
    ),
    Wording(
        "cudnn",
        "cudnn.no_algorithm",
        "cudnnalgorithm",
        r"Unable to find a valid cuDNN algorithm to run (?: convolution)?",
    ),
    Wording(
        "cudnn",
        "cudnn.no_algorithm",
        "findanengine",
        r"(?: GET | FIND)? (?: was)? unable to find an engine to execute (?: this computation)?",
    ),
    Wording(
        "cudnn",
        "cudnn.no_algorithm",
        "convolutionalgorithm",
        r"Failed to get convolution algorithm \.? (?: This is probably because cuDNN failed to initialize)?",
    ),
)
