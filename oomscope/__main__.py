"""``python -m oomscope``, and the command ``oomscope``."""

from __future__ import annotations

import gc
import sys

_CREATED = 200_000
"""So many objects must be added before the cyclic collector looks: more than the report of a small snapshot makes."""


def main() -> int:
    """Run the command line; the exit code."""
    gc.set_threshold(_CREATED)
    try:
        from oomscope.commands.common.errors import run

        return run()
    finally:
        # What lives now lives until the process ends: then nobody needs to know what of it is in a circle.
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
