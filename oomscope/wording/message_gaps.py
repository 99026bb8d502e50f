"""What a message leaves open, in words."""

from __future__ import annotations

from oomscope.wording.template import Sentence

MESSAGE_GAPS: dict[str, Sentence] = {
    "message_gaps.no_size": "how much was asked for: no size is printed",
    "message_gaps.which_operation": "from which shapes so much was asked for",
    "message_gaps.who_holds": "which lines and objects hold the {allocated:size} that was allocated",
    "message_gaps.who_holds_unknown": "what held the memory",
    "message_gaps.what_separates": "what keeps the free pieces apart",
    "message_gaps.whose_outside": "whose the rest is: another process, this process's context or its libraries",
    "message_gaps.whose_rest": "whose the other {rest:size} of the card is",
    "message_gaps.whose_little": "whose the other {rest:size} of the card is (a CUDA context alone takes a few"
    " hundred MiB)",
    "message_gaps.whose_outside_pool": "whose the rest is: what cudaMallocAsync's pool keeps, another process, this"
    " process's context or its libraries",
    "message_gaps.driver_or_engine": "whether the card refused, or the engine, and how much was asked for",
    "message_gaps.why_refused": "why it was refused: a limit that is not printed, the driver, or memory that came free"
    " only afterwards",
    "message_gaps.near_cap": "whether the {allowed:size} allowed was reached: what PyTorch had reserved is not told",
    "message_gaps.which_process": "which of the named processes is this one",
    "message_gaps.too_old": "oomscope records from torch 2.1 on; this message is an older one's, so upgrade first",
    "message_gaps.comfyui": "ComfyUI sets this allocator by itself; there, start it with --disable-cuda-malloc",
    "message_gaps.mps": "which tensors hold the memory; PyTorch takes no memory snapshots on MPS",
    "message_gaps.budget": "how the rest of the memory is used",
    "message_gaps.who_on_card": "which process holds the card",
    "message_gaps.rest_of_card": "how much of the card others hold",
    "message_gaps.set_up": "whether any memory was short: a broken driver or WSL set-up says the same",
    "message_gaps.driver": "how much was asked for, of the card's memory or of page-locked host memory, and"
    " who holds it; the line that is named may be a later one",
    "message_gaps.driver_sized": "who holds the card",
    "message_gaps.other_snapshots": "oomscope run records CUDA and ROCm only",
    "message_gaps.library_alloc": "how much it asked for, and who holds the card",
    "message_gaps.library": "whether memory was short: bad indices or types fail with the same status",
    "message_gaps.host": "what filled the machine's memory, and whether a container's limit counts",
    "message_gaps.host_windows": "what filled the machine's memory and its page file",
    "message_gaps.pinned": "whether the machine, a container or the locked-memory limit refused",
    "message_gaps.what_filled_host": "what filled host memory",
    "message_gaps.what_filled_group": "what filled the group's memory",
    "message_gaps.signal": "who sent the signal: the kernel, a container's limit, a scheduler or a person",
    "message_gaps.signal_not_container": "who sent the signal: the kernel, a scheduler or a person; by what is printed,"
    " not the container's own limit",
    "message_gaps.which_buffers": "which of the program's buffers are the largest; XLA can list them",
    "message_gaps.who_refused": "who refused, and what held the memory",
    "message_gaps.unknown_words": "whose memory it was, and how much",
}
