"""Messages in the source of a program: a text of several literals is one, and what only looks for a message is none."""

from __future__ import annotations

import pytest

from tests.messages.comparing import number, read
from tests.messages.test_logs import MESSAGE, MIB, SAYS, the_message

ASYNC = (
    'HELD = ("Allocation on device 1 would exceed allowed memory. (out of memory)\\n"\n'
    '        "Currently allocated     : 20.50 GiB\\nRequested               : "\n'
    '        "384.00 MiB\\nDevice limit            : 22.00 GiB\\n"\n'
    '        "Free (according to CUDA): 12.25 MiB")\n'
)


@pytest.mark.parametrize("width", [16, 24, 25, 40, 61, 96])
@pytest.mark.parametrize(
    ("before", "after"), [('    "', '"'), ("  f'", "'"), ('    "', '" +'), ('  + "', '"'), ('"', '" \\'), ("", " \\")]
)
def test_a_text_of_several_literals_is_one(width: int, before: str, after: str):
    parts = [MESSAGE[start : start + width] for start in range(0, len(MESSAGE), width)]
    the_message("TEXT = (\n" + "\n".join(f"{before}{part}{after}" for part in parts) + "\n)\n")


def test_line_breaks_that_the_literals_write_are_none_of_the_seams():
    (message,) = read(ASYNC).messages
    assert (message.kind, number(message, "device"), number(message, "requested")) == ("torch-async", 1, 384 * MIB)
    assert number(message, "free") == round(12.25 * MIB)


@pytest.mark.parametrize("between", ['"),\n    ("', '",\n    "', '"""\n"'])
def test_other_literals_are_other_texts(between: str):
    cut = MESSAGE.index(" GiB is free")
    (message,) = read(f'("{MESSAGE[:cut]}{between}5{MESSAGE[cut:]}"\n').messages
    assert number(message, "free") in (None, SAYS["free"])


@pytest.mark.parametrize(
    "source",
    [
        'if "CUDA out of memory" in str(error):',
        'return "out of memory" in error_msg or "CUDA error: out of memory" in error_msg',
        'if (message.includes("CUDA out of memory")) retry();',
        'with pytest.raises(RuntimeError, match="CUDA out of memory"):',
        'OutOfMemoryError, "XPU out of memory. Tried to allocate ",\n    format_size(size), ". GPU "',
        'TORCH_CHECK(false, "CUDA out of memory. Tried to allocate ", size);',
        'throw std::runtime_error("CUDA error: out of memory " + std::to_string(size));',
        'fprintf(stderr, "CUDA error: out of memory at %s:%d", file, line);',
        'raise RuntimeError(f"CUDA out of memory on {device}")',
        'grep -in "CUDA out of memory" train.log',
        r'OOM = re.compile(r"CUDA out of memory\. Tried to allocate ([\d.]+) GiB")',
        '# Matches the kernel\'s lines, e.g.:\n#   "Out of memory: Killed process 77 (python) total-vm:..."\n'
        '#   "Memory cgroup out of memory: Killed process 78 (sh) total-vm:..."',
        '# Parses messages of a kill, for example "Out of memory: Killed process 77 (python) total-vm:..."',
        "- `CUDNN_STATUS_NOT_INITIALIZED (1)`: not set up\n- `CUDNN_STATUS_ALLOC_FAILED (2)`: no resources\n"
        "- `CUDNN_STATUS_BAD_PARAM (3)`: wrong",
        "CUDA_ERROR_INVALID_VALUE = 1,\nCUDA_ERROR_OUT_OF_MEMORY = 2,\nCUDA_ERROR_NOT_INITIALIZED = 3,",
    ],
)
def test_a_program_that_looks_for_a_message_has_not_printed_it(source: str):
    assert read(f"{source}\n").messages == ()
    assert the_message(f"{source}\n\n\n{MESSAGE}\n")


@pytest.mark.parametrize(
    "said",
    [
        'I get "CUDA out of memory" in my training',
        'First it ran, and "CUDA out of memory" in the end.',
        "{'error': 'CUDA out of memory', 'step': 3}",
        'error="CUDA out of memory", retrying in 3 s',
        'it says "CUDA out of memory", sometimes (not always), 100 % done',
        '=== "CUDA out of memory" ===',
        "*CUDA out of memory.*Then it stopped",
        "CUDA out of memory[^1]",
        'It detects the card but fails with errors like "CUDA out of memory"',
    ],
)
def test_a_message_that_is_quoted_was_printed(said: str):
    assert [one.kind for one in read(f"{said}\n").messages] == ["torch-cuda"]
