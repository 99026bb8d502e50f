"""From history to findings: why a request failed, who holds the memory, and what keeps the rest from being used."""

from oomscope.analysis.analyze import analyze
from oomscope.analysis.records import DeviceFindings, Findings, Verdict

__all__ = ["DeviceFindings", "Findings", "Verdict", "analyze"]
