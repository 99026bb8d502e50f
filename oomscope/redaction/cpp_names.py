"""Names of C++ functions with aliases for what is the program's own: template arguments bring its types anywhere."""

from __future__ import annotations

import re
from collections.abc import Callable

_LIBRARIES = frozenset({
    "at", "c10", "c10d", "caffe2", "torch", "std", "pybind11", "cub", "thrust", "cuda", "cutlass", "cudnn_frontend",
    "__gnu_cxx", "__cxx11", "__detail",
})  # fmt: skip
"""Namespaces that are nobody's own, with all that stands behind them."""
_WORDS = frozenset({
    "alignas", "auto", "bool", "char", "char16_t", "char32_t", "char8_t", "class", "clone", "cold", "const",
    "constexpr", "constprop", "decltype", "double", "enum", "false", "float", "int", "isra", "lambda", "localalias",
    "long", "namespace", "noexcept", "nullptr", "operator", "part", "short", "signed", "sizeof", "static", "struct",
    "template", "this", "true", "type", "typename", "union", "unnamed", "unsigned", "unwind", "unsupported", "void",
    "volatile", "wchar_t", "_object", "CUstream_st", "CUevent_st", "THPVariable", "TensorImpl", "StorageImpl",
    "AutogradMeta", "DifferentiableViewMeta", "PyTorchMemEffAttention", "_Tuple_impl", "__nv_dl_tag",
    "__nv_hdl_wrapper_t", "__half", "__nv_bfloat16", "cudnnContext", "cublasContext", "cublasLtContext",
    "dynamo__custom_eval_frame", "dynamo_eval_custom_code", "_start", "start_thread", "method_vectorcall",
    "partial_vectorcall", "type_call", "slot_tp_call", "run_mod", "pymain_run_python",
})  # fmt: skip
_C_NAME = re.compile(
    r"_?_?Py(?:CFunction|Cell|Code|Dict|Eval|File|Function|Import|Iter|List|Long|Mapping|Method|Number|OS|Object|Run"
    r"|Sequence|Set|Thread|Tuple|Type|Unicode|Vectorcall)?_[A-Za-z]\w*\Z"
    r"|THP(?:Variable|Function|Engine|Module|Storage|Generator|Event|Stream)_\w+\Z"
    r"|__libc_\w+\Z|__clone\d?\Z|pthread_\w+\Z"
)
_PIECES = re.compile(
    r"\(anonymous namespace\)|operator(?: ?\(\)|\[\]|<<=?|>>=?|->\*?|<=>|[-+*/%^&|~!=<>,]{1,3}(?=\())|->|::"
    r"|\w+|[\[({<]|[\])}>]|[^\x00-\x7f]+|.",
    re.DOTALL,
)
_NUMBER = re.compile(r"\d+[ulfULF]{0,3}\Z")


def aliased(symbol: str, alias: Callable[[str], str]) -> str:
    """`symbol` with `alias` of each identifier that no library of `_LIBRARIES` qualifies."""
    shown: list[str] = []
    outer: list[bool] = []  # for each open bracket, whether what stands before it is a library's
    known = behind = False
    for piece in _PIECES.findall(symbol):
        if piece == "::":
            behind = True
        elif (piece[0].isidentifier() or piece[0].isdigit() or not piece.isascii()) and not _NUMBER.match(piece):
            is_word = piece in _WORDS or (not piece.isidentifier() and piece.startswith("operator"))
            known = (known and behind) if behind or is_word else _is_library(piece)
            behind = False
            shown.append(piece if known or is_word else alias(piece))
            continue
        elif piece in ("(", "[", "{", "<"):
            outer.append(behind and known if piece == "{" else known)
            known = behind = False
        elif piece in (")", "]", "}", ">"):
            known, behind = bool(outer) and outer.pop(), False
        elif piece != "(anonymous namespace)":
            known = behind = False
        else:
            known, behind = known and behind, False
        shown.append(piece)
    return "".join(shown)


def _is_library(head: str) -> bool:
    return head in _LIBRARIES or _C_NAME.match(head) is not None
