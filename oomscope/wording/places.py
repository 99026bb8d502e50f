"""Lines of code as readers want them, and what stands where there is none."""

from __future__ import annotations

import re

from oomscope.analysis.attribution.records import SiteUse
from oomscope.analysis.memory.records import Pin
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Oom
from oomscope.wording.clean import clean
from oomscope.wording.labels import SITE_LABELS, label
from oomscope.wording.paths import Shorten
from oomscope.wording.template import said_place

_UNSEEN = re.compile(r"\Aa \S+ that nothing visible holds(\[[^\]]*\]|\{[^}]*\})*\Z")


def place(location: Location, shorten: Shorten) -> str:
    """``fill_cache (workloads.py:227)``."""
    return said_place(clean(location.function, 120), file_line(location, shorten))


def file_line(location: Location, shorten: Shorten) -> str:
    """``workloads.py:227``."""
    return f"{shorten(location.file)}:{location.line}"


def site_text(item: SiteUse | Pin | Growth | Oom, shorten: Shorten) -> str:
    """The site of `item`, or why it has none."""
    return place(item.site, shorten) + backward_text(item) if item.site else no_site_text(item)


def backward_text(item: SiteUse | Pin | Growth | Oom) -> str:
    """What is said behind the site of `item` where that is the forward's line and its backward made the block."""
    label_code = None if isinstance(item, Oom) else item.label
    return f" ({SITE_LABELS['backward_of']})" if label_code == "backward_of" else ""


def no_site_text(item: SiteUse | Pin | Growth | Oom) -> str:
    """Why `item` has no site."""
    if isinstance(item, Oom):
        # A stack without a site is torch's own from end to end.
        return SITE_LABELS["only_torch" if item.stack else "no_stack"]
    return label(item.label or "only_torch", SITE_LABELS)


def caller_text(item: SiteUse | Pin | Growth | Oom, shorten: Shorten) -> str | None:
    """The reader's own code behind `item`, where that is another line than the site."""
    return place(item.caller, shorten) if item.caller and item.caller != item.site else None


def caller_or_site_text(oom: Oom, shorten: Shorten) -> str:
    """The reader's own line that made a request, else its site, else why there is neither."""
    where = oom.caller or oom.site
    return place(where, shorten) if where else no_site_text(oom)


def holder_name(way: str) -> str:
    """The way to a holder as tables have it; what only C++ holds, such as the arguments of a call, has no name."""
    return _UNSEEN.sub("an object without a name", way)
