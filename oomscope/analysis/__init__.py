"""From history to findings: why a request failed, who holds the memory, and what keeps the rest from being used."""

from oomscope.analysis.analyze import analyze
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.verdict.records import Verdict

__all__ = ["DeviceFindings", "Findings", "Verdict", "analyze"]
