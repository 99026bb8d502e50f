"""Memory on the chip that one block of a kernel may use: no device memory at all."""

from __future__ import annotations

import re

from oomscope.messages.families.wording import Wording, with_figures
from oomscope.messages.figures import exact
from oomscope.messages.records import Reading

ANCHORS = (b"out of resource", b"shared data", b"shared memory", b"local memory (", b"allocated in sb")


def _hexadecimal(reading: Reading, match: re.Match[str]) -> Reading:
    return with_figures(reading, {"requested": exact(int(match["used"], 16)), "allowed": exact(int(match["most"], 16))})


WORDINGS = (
    Wording(
        "shared-memory",
        "chip.triton",
        "outofresource",
        r"""out of resources? : (?! registers | threads) [\w.]{1,200}? [,>]? Required: <requested:bytes> ,{0,3}
            Hardware limit (?: ation)? : <allowed:bytes>""",
    ),
    Wording("shared-memory", "chip.triton", "outofresource", r"out of resources? : shared memory (?! ,? Required)"),
    Wording(
        "shared-memory",
        "chip.registers",
        "outofresource",
        r"out of resources? : [a-z]{1,20} ,? Required: \d+ ,? Hardware limit (?: ation)? : \d+",
    ),
    Wording(
        "shared-memory",
        "chip.ptxas",
        "toomuchshareddata",
        r"""uses too much shared data \( 0x <used:hex> bytes (?: \+ 0x[0-9a-f]+ bytes system)? , 0x <most:hex>
            (?: bytes)? max \)""",
        finish=_hexadecimal,
    ),
    Wording(
        "shared-memory",
        "chip.launch",
        "allocatedinsb",
        r"""couldn't be allocated in SB
            (?: .{0,440}? per partition by instruction: <requested:bytes> Total SB Partition Size: <allowed:bytes>)?""",
    ),
    Wording(
        "shared-memory",
        "chip.triton",
        "shareddata|sharedmemory",
        r"""kernels? (?: needs? | requires? | uses?) (?: > | more than | over | too much) (?: \d{1,7} k? (?: i?B)?)?
            (?: of)? shared (?: data | memory)""",
    ),
    Wording(
        "shared-memory",
        "chip.launch",
        "muchsharedmemory",
        r"too much shared memory (?: requested)? :? <requested:bytes> > <allowed:bytes>",
    ),
    Wording(
        "shared-memory",
        "chip.launch",
        "exceedslimit",
        r"local memory \( <requested:bytes> \) exceeds limit \( <allowed:bytes> \)",
    ),
    Wording(
        "shared-memory",
        "chip.launch",
        "sharedmemorysizelimit",
        r"Shared memory size limit exceeded: requested <requested:bytes> , available: <allowed:bytes>",
    ),
    Wording(
        "shared-memory",
        "chip.launch",
        "sharedmemorysizeto",
        r"Failed to set the allowed (?: dynamic)? shared memory size to <requested:bytes>",
    ),
)
