"""What the lines around a message show: what was being done, which program it was, and where that ran."""

from __future__ import annotations

import re

from oomscope.messages.unwrap import Strand

_LOOK_BACK = 30
"""Lines above a message in which its traceback ends."""
_INNERMOST = 4
_FRAME = re.compile(r'File "([^"]{1,400})", line \d+, in (\S{1,200})')
_MODULE = re.compile(rb'File \\*"([^"\\\n]{1,300}\.py)\\*", line \d+, in <module>')
_INSTALLED = re.compile(r"site-packages|dist-packages|[\\/]lib[\\/]python|[\\/]bin[\\/]|[\\/]torchrun|^<")
_PINS = re.compile(r"\.pin_memory\(|pin_memory=True")
_AROUND = {
    "windows": re.compile(r"(?<![\w.])[A-Za-z]:\\{1,2}\w|DefaultCPUAllocator: not enough memory"),
    "tensorflow": re.compile(r"tensorflow|keras", re.IGNORECASE),
    "jemalloc_pages": re.compile(r"jemalloc.{0,3}: Unsupported system page size"),
    "not_container": re.compile(r"OOMKilled\W{0,4}false", re.IGNORECASE),
    "old_python": re.compile(r"[\\/](?:python|py|Python)(?:2\.7|3\.[4-7]|3[4-7])[\\/]"),
    "darknet": re.compile(r"Try to set subdivisions="),
    "onnxruntime": re.compile(r"onnxruntime|ONNXRuntime"),
    "comfyui": re.compile(r"comfy", re.IGNORECASE),
}
"""Where only one system, framework or program writes so."""
_BELOW = 3
_LOADING = {
    "convert", "_apply", "load_state_dict", "_load_state_dict_into_meta_model", "set_module_tensor_to_device",
    "create_weights", "process_weights_after_loading", "load_model", "initialize_model", "_load_from_state_dict",
}  # fmt: skip
_ANY_LOADING = {"convert", "_apply", "create_weights", "set_module_tensor_to_device", "process_weights_after_loading"}


def doing(strand: Strand, start: int) -> str | None:
    """What the innermost frames above the message at `start` did.

    Returns:
        ``weights``: put on the device; ``pinned``: host memory page-locked; ``optimizer``; ``backward``; or None.
    """
    index = strand.index_at(start)
    above = strand.lines[max(0, index - _LOOK_BACK) : index + 1]
    frames = [match for line in above if '"' in line.text and (match := _FRAME.search(line.text))][-_INNERMOST:]
    names = [match[2] for match in frames]
    if not frames:
        return None
    if any(name in ("pin_memory", "_pin_memory", "pin_memory_fn") for name in names[-2:]) or _PINS.search(
        above[-2].text
    ):
        return "pinned"
    if names[-1] in _LOADING or any(name in _ANY_LOADING for name in names[-3:]):
        return "weights"
    if any("/torch/optim/" in match[1].replace("\\", "/") for match in frames):
        return "optimizer"
    if any(name in ("backward", "_engine_run_backward") for name in names):
        return "backward"
    return None


def around(strand: Strand, start: int) -> frozenset[str]:
    """Which of the names of `_AROUND` the lines around the message at `start` show."""
    index = strand.index_at(start)
    lines = strand.lines[max(0, index - _LOOK_BACK) : index + 1 + _BELOW]
    text = "\n".join(f"{line.prefix}{line.text}" for line in lines)
    return frozenset(name for name, words in _AROUND.items() if words.search(text))


def script_above(raw: bytes) -> str | None:
    """The program whose traceback ends `raw`: the last file that ran as ``<module>`` and is no installed one."""
    for match in reversed(list(_MODULE.finditer(raw))):
        path = match[1].decode("utf-8", "replace")
        if not _INSTALLED.search(path):
            return path
    return None
