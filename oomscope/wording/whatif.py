"""What holds for replays under other settings: notes on rows, which are read as ``a; b; c``, and on all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.wording.allocator_rules import rule_text
from oomscope.wording.template import Sentence, fill

_KNOWN_CAP = "the recorded cap is known only to lie between {low:bytes} and {high:bytes}"
_LATE = "the recording does not begin with the first allocation"


def _departs(values: Mapping[str, Any]) -> str:
    """The first difference, the rule that decides it, and that the rule may have changed since it was read."""
    text = fill(_DEPARTS, values)
    if rule := values.get("rule"):
        text += f"; what differs there is {rule_text(rule)}"
    if newer := values.get("newer"):
        text += (
            f"; the file is of torch {newer[0]}.{newer[1]}, and the rules are those of "
            f"{values['known'][0]}.{values['known'][1]}"
        )
    return text


_DEPARTS = (
    "the replay of the recorded setting departs from the recording at entry {entry:count} "
    "({mismatches:n mismatch/mismatches} in {addresses:n address/addresses} and {segment_events:n segment event}): "
    "the recording allocator is not the one modelled here, or entries are missing"
)

WHATIF: dict[str, Sentence] = {
    "whatif.up_to_the_last_entry": "up to the last recorded entry",
    "whatif.recorded_window": "from the first recorded entry to the last",
    "whatif.estimate": "an estimate: the program is not the recorded one",
    "whatif.rest_as_recorded": "other settings as recorded ({conf})",
    "whatif.needs_newer_torch": "{option} needs torch {torch}",
    "whatif.not_answered": "not answered[: {why}]",
    "whatif.from_the_trace": "from the trace, not replayed[: {why}]",
    # Changes of the program.
    "whatif.scaled": "{count:n allocation} of {site} scaled by {factor}",
    "whatif.freed_each_step": "{count:n allocation} of {site} freed at the end of their step",
    "whatif.left_out": "{count:n allocation} of {site} left out",
    "whatif.nothing_left": "nothing is left to replay",
    "whatif.steps_unknown": "the steps of the program are not known",
    "whatif.grows": (
        "Memory grows by {bytes_per_step:bytes} per step in this recording: more memory only delays the failure."
    ),
    # Limits.
    "whatif.any_cap_gives_the_same": f"{_KNOWN_CAP}; every cap in that range gives the same result",
    "whatif.lowest_cap_taken": f"{_KNOWN_CAP}; {{low:bytes}} is used",
    "whatif.depends_on_the_cap": "fails at {fails:bytes}, survives at {survives:bytes}",
    "whatif.limit_below_reserved": "{bytes:bytes} was reserved when the recording began, more than the limit",
    "whatif.collection_needs_a_cap": "garbage_collection_threshold has no effect without a cap (--limit)",
    "whatif.whole_card": "the whole card counts as free, although the CUDA context and libraries take about 0.5 GiB",
    "whatif.cap_replaced": "the recorded cap of {cap:bytes} does not apply",
    "whatif.fraction_of_unknown_card": (
        "per_process_memory_fraction has no effect here: the size of the card is not known"
    ),
    # Orders of segment addresses.
    "whatif.order_matters": "the order of segment addresses matters: {orders:n order} tried",
    "whatif.one_order": "one order of addresses tried",
    "whatif.orders_cut_short": "only {orders:n order} of addresses tried: time budget spent",
    "whatif.fails_in_some_orders": "fails in {failed} of {orders:n order} of addresses",
    # The minimum.
    "whatif.least_memory_unknown": "minimum unknown: what was reserved before the recording counts",
    "whatif.least_memory_not_searched": "minimum not searched for: time budget spent",
    "whatif.least_memory_here_only": (
        "minimum verified for this limit only: under garbage collection every limit behaves differently"
    ),
    "whatif.least_memory_proven_to": "minimum verified for limits up to {limit:bytes} only",
    "whatif.survives_with_less": (
        "also survives with {bytes:bytes} less than the minimum, but not with every limit in between"
    ),
    "whatif.workspace": (
        "the request that fails is freed before anything else is requested, as a workspace is: libraries such as cuDNN "
        "then use less, and the run may survive"
    ),
    "whatif.less_workspace": "below the minimum a workspace would not fit, and cuDNN may use a smaller one",
    # What the replay of a recording can answer.
    "whatif.no_allocation": "the trace has no allocation, so there is nothing to replay",
    "whatif.replay_departs": _departs,
    "whatif.late_recording": (
        f"{_LATE}; only the recorded setting, with or without calls of empty_cache, and expandable segments are "
        "answered, for the recorded window"
    ),
    "whatif.late_layout": f"{_LATE}, and the layout it found was made under the recorded setting",
    "whatif.late_laid_out_anew": (
        f"{_LATE}: the blocks it found are laid out anew in address order, and a peak before the recording is not seen"
    ),
}
