"""``python -m oomscope``, and the command ``oomscope``."""

from __future__ import annotations

import gc
import sys

COLLECT_AFTER = 200_000
"""New objects between two searches for cycles of them: the program makes few cycles, and ends soon."""


def main() -> int:
    """Run the command line; the exit code."""
    gc.set_threshold(COLLECT_AFTER, 20, 100)
    from oomscope.commands.common.errors import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
