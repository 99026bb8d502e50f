"""``python -m oomscope``, and the command ``oomscope``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; the exit code."""
    from oomscope.commands.common.errors import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
