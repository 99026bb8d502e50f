"""Programs that name what they do, as traces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oomscope.analysis import analyze
from oomscope.analysis.findings import DeviceFindings, Findings
from tests.analysis.programs import BATCH, MIB, Program
from tests.builders import entry, frame

PLAIN = (frame("work", 7, "/workspace/train/plain.py"), frame("<module>", 90, "/workspace/train/plain.py"))
"""A stack that tells nothing of phases."""
__all__ = ["BATCH", "MIB", "PLAIN", "Marked", "found"]


class Marked(Program):
    """Records ranges, and texts on entries."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, Any] = {}

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        self.mark(name, "START")
        yield
        self.mark(name, "END")

    def annotate(self, address: int, text: str) -> None:
        """As `torch.cuda.memory._annotate_tensor` writes it (torch 2.14)."""
        self.entries.append(entry("annotate", address, 0, time_us=self.time, user_metadata=text))

    def _add(self, action: str, address: int, size: int, stack: tuple[dict[str, Any], ...]) -> None:
        self.entries.append(entry(action, address, size, time_us=self.time, frames=list(stack), **self.texts))


def found(program: Program, at: str | int = "auto", **top: Any) -> tuple[Findings, DeviceFindings]:
    """The findings, and those of the one device."""
    findings = analyze(program.snapshot(**top), at=at, whatif=False)
    return findings, findings.devices[0]
