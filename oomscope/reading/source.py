"""TBD."""

from collections.abc import Callable

Progress = Callable[[int, int, int], None]
