"""What accelerate's ``Accelerator`` keeps of all that it has prepared, and the call that lets go of it."""

from __future__ import annotations

import re

_KEEPS = re.compile(r"(?:^|: )([\w.]*\baccelerator)\._(?:optimizers|models)\b")


def free_memory(holder: str | None) -> str | None:
    """The call, ``accelerator.free_memory()``, if `holder` is such a list; else None."""
    found = _KEEPS.search(holder or "")
    return f"{found[1]}.free_memory()" if found else None
