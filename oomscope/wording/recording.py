"""What a recording could see, and how to record more."""

from __future__ import annotations

from oomscope.wording.template import Sentence

_WINDOW = "{entries:n entry/entries}[ over {span:duration}]"
_START_EARLIER = "Start recording before the model is built."

RECORDING: dict[str, Sentence] = {
    "recording.full": f"Recorded from the first allocation to the end: {_WINDOW}.",
    "recording.wrapped": (
        f"The trace is a ring buffer that overwrote its oldest entries; it shows the last {_WINDOW}. Earlier peaks and "
        "growth are not visible; live blocks keep their stacks. Record with a larger max_entries to see more."
    ),
    "recording.window": (
        f"This is a part of the recording: {_WINDOW}, of {{recorded:count}} recorded (--window). Peaks, growth and "
        "steps outside of it are not seen; a step that it cuts shows only what lies within, and steps without recorded "
        "names are numbered anew. What was allocated before it has its stack if it is live at the end of the part."
    ),
    "recording.window_of_ring": (
        "The recording itself begins where a ring buffer overwrote its oldest entries; what was before is not seen."
    ),
    "recording.restarted": (
        "Recording was started again when {before:bytes} of what is live at the end was already allocated; those "
        f"blocks have stacks of an earlier recording, but no entries. The trace shows {_WINDOW}; peaks and growth "
        "before that are not seen."
    ),
    "recording.late": (
        "Recording began when {before:bytes} of what is live at the end was already allocated; those blocks have no "
        f"stacks. The trace shows {_WINDOW}. {_START_EARLIER}"
    ),
    "recording.late_and_freed": (
        "Recording began after the program had used memory, all of it freed since; peaks before that are not visible. "
        f"The trace shows {_WINDOW}. {_START_EARLIER}"
    ),
    "recording.state_only": (
        'Only the final state was recorded (enabled="state"): live blocks have stacks, but without a timeline neither '
        'a peak nor growth can be seen. Record with enabled="all" to see what led here.'
    ),
    "recording.ring_of_one": (
        "The trace is a ring buffer of one entry, as the legacy call _record_memory_history(True) makes it: live "
        "blocks have stacks, but without a timeline neither a peak nor growth can be seen. Record with "
        "_record_memory_history(max_entries=1_000_000) to see what led here."
    ),
    "recording.stopped": (
        "The trace is empty, as it is once recording is stopped: live blocks have stacks, but without a timeline "
        "neither a peak nor growth can be seen. Take the snapshot while recording is on."
    ),
    "recording.none": (
        "Nothing was recorded before this snapshot was taken: it has segments and blocks, but no stacks and no "
        "timeline. Call torch.cuda.memory._record_memory_history() first, or use oomscope.record."
    ),
    "recording.empty": (
        "Nothing was recorded, and PyTorch held no memory on a GPU when this snapshot was taken. Call "
        "torch.cuda.memory._record_memory_history() first, or use oomscope.record."
    ),
    "recording.without_history": (
        "The allocator keeps no history that torch could record: there are its figures, and names and holders of "
        "tensors, but no segments, no stacks and no timeline."
    ),
    "recording.no_stacks": (
        'No stacks were recorded. Record with context="alloc" and stacks="python" to see what allocates.'
    ),
    "recording.python_stacks_only": (
        "Only Python stacks were recorded: what C++ code allocates in backward has no frames of its own."
    ),
    "recording.no_completed_free": (
        "Blocks are gone, but the trace says of none when it was free again (no free_completed): those entries were "
        "skipped."
    ),
    "recording.search_cut": (
        "The search for who holds memory ran out of time[ after {seconds:duration}] as the dump was made: holders, or "
        "what nobody reads any more, may be missing. Record with a larger walk_budget to see all of them."
    ),
}
