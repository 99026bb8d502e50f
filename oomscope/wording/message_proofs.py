"""What the figures of a message prove, in words."""

from __future__ import annotations

from oomscope.wording.template import Sentence

MESSAGE_PROOFS: dict[str, Sentence] = {
    "message_proofs.larger_than_card": "The request ({requested:size}) alone is larger than the whole card"
    " ({total:size}). Nothing that is freed and no setting of the allocator helps; the request itself must be smaller.",
    "message_proofs.larger_than_card_alone": "The request ({requested:size}) alone is larger than the whole card"
    " ({total:size}).",
    "message_proofs.larger_than_cap": "The request ({requested:size}) alone is larger than what this process may hold"
    " ({allowed:size}).",
    "message_proofs.live_and_request": "What was allocated ({allocated:size}) and the request ({requested:size}) are"
    " {needed:size} together, more than the whole card ({limit:size}): even on an empty card without any fragmentation"
    " they would not fit.",
    "message_proofs.live_and_request_capped": "What was allocated ({allocated:size}) and the request ({requested:size})"
    " are {needed:size} together, more than this process may hold ({limit:size}): without any fragmentation they would"
    " not fit either.",
    "message_proofs.weights": "The model was still being loaded: what was allocated by then ({allocated:size}) and the"
    " next weight ({requested:size}) are more than this process can have ({limit:size}). Unless something ran"
    " before, the batch size plays no part.",
    "message_proofs.during_weights": "It failed while weights were put on the device. Unless something ran before, the"
    " batch size plays no part.",
    "message_proofs.during_backward": "It failed in backward.",
    "message_proofs.during_optimizer": "It failed in the optimizer's step.",
    "message_proofs.cap_not_card": "The cap refused, not the card: {reserved:size} reserved and {requested:size} more"
    " exceed the {allowed:size} allowed to this process, while the card had {free:size} free.",
    "message_proofs.cap": "The cap of this process was reached: {reserved:size} and {requested:size} more exceed the"
    " {allowed:size} allowed.",
    "message_proofs.cap_near": "With the request, {needed:size} would have been reserved of the {allowed:size} allowed:"
    " the cap, as far as rounded sizes tell.",
    "message_proofs.neither": "{rest:size} of the card is neither allocated here nor free.",
    "message_proofs.free_inside": "{inside:size} lay free inside PyTorch, more than the {requested:size} requested, but"
    " in pieces that could not serve: too small each, or of another stream or pool.",
    "message_proofs.nowhere": "Free inside PyTorch ({inside:size}) and free on the card ({free:size}) are together less"
    " than the {requested:size} requested: this is no fragmentation.",
    "message_proofs.small_segment": "PyTorch prints 2.00 MiB for any tensor of up to 1 MiB: that is what it then asks"
    " of the driver.",
    "message_proofs.large_segment": "PyTorch prints 20.00 MiB also for any tensor of 1 to 10 MiB: that is what it then"
    " asks of the driver.",
    "message_proofs.only_together": "Free inside PyTorch ({inside:size}) and free on the card ({free:size}) would serve"
    " the {requested:size} only together, neither alone.",
    "message_proofs.others": "Other processes hold {others:size} of the card. Were that free as well as the"
    " {free:size}, the {requested:size} would have fitted.",
    "message_proofs.unnamed_others": "{rest:size} of the card is held neither by this process nor free. Were that"
    " free, the {requested:size} would have fitted.",
    "message_proofs.outside": "{rest:size} of the card is held outside this allocator. Were that free, the"
    " {requested:size} would have fitted.",
    "message_proofs.beside_allocator": "{beside:size} of what this process holds lies outside PyTorch's allocator: its"
    " context, NCCL or another library.",
    "message_proofs.free_in_pools": "{pools:size} of what the message counts as allocated lies free in private pools,"
    " where only their own CUDA graphs or MemPool can use it.",
    "message_proofs.contradicts": "The message contradicts itself, with {free:size} free of {total:size} in all:"
    " neither figure proves anything.",
    "message_proofs.mostly_outside": "{rest:size} of the card's {total:size} is held outside this allocator.",
    "message_proofs.room_on_card": "The card shows {free:size} free, enough for the {requested:size} requested: its"
    " totals do not explain why it refused.",
    "message_proofs.spilled": "PyTorch held {held:size} on a card of {total:size}: part of it lay in host memory.",
    "message_proofs.card_full": "The card had {free:size} free, less than the {requested:size} requested.",
    "message_proofs.card_full_by_this": "The card had {free:size} free, less than the {requested:size} requested; this"
    " process held {process:size} of its {total:size}.",
    "message_proofs.one_block": "One block of {requested:size} was asked for; this driver gives at most {allowed:size}"
    " in one piece, however much is free.",
    "message_proofs.one_buffer_of_device": "One buffer of {requested:size} was asked for, more than the device makes in"
    " one piece, however much is free.",
    "message_proofs.one_buffer": "One buffer of {requested:size} was asked for, more than Metal makes in one piece.",
    "message_proofs.mps_cap": "PyTorch's own limit refused: with the request, {needed:size} would have been in use of"
    " the {allowed:size} allowed.",
    "message_proofs.mps_over": "PyTorch's own limit was exceeded already: {used:size} was in use of the {allowed:size}"
    " allowed.",
    "message_proofs.mps_near": "With the request, {needed:size} would have been in use of the {allowed:size} allowed:"
    " the limit, as far as rounded sizes tell.",
    "message_proofs.mps_below": "With the request, {needed:size} would have been in use of the {allowed:size} allowed:"
    " the limit was not reached, Metal itself refused.",
    "message_proofs.mps_outside_pool": "More lies outside what PyTorch counts as allocated ({other:size} of this"
    " process) than inside ({allocated:size}).",
    "message_proofs.budget": "The engine's own check of its budget refused; the card did not.",
    "message_proofs.budget_sized": "The engine's own check of its budget refused, not the card: it wants {wanted:size},"
    " and {left:size} is left for it.",
    "message_proofs.warm_up": "The engine ran a batch of that many tokens to warm up, and that failed.",
    "message_proofs.reckoned": "The engine reckoned that the model does not fit; the card refused nothing.",
    "message_proofs.startup": "{used:size} of the card's {total:size} was in use before the engine started; it wanted"
    " {wanted:size}.",
    "message_proofs.startup_host": "{used:size} of the {total:size} of the machine's memory that the engine saw was in"
    " use before it started; it wanted {wanted:size}. No card is involved.",
    "message_proofs.kv_cache": "The cache for one request of {length:count} tokens needs {needed:size}; {left:size} is"
    " left for it.",
    "message_proofs.length": "The cache holds {fits:count} tokens, one request may have {length:count}.",
    "message_proofs.cache_tokens": "The cache has room for {left:count} more tokens, the request takes {tokens:count}.",
    "message_proofs.no_blocks": "The engine reckoned that nothing of what it may use was left for the KV cache, after"
    " weights and a forward pass.",
    "message_proofs.system_memory": "The engine reckons that the model needs {needed:size} of the machine's memory, and"
    " {left:size} is available; this is not the card's memory.",
    "message_proofs.on_chip": "One block of a kernel wants {requested:size} of the {allowed:size} of on-chip memory"
    " that it may have. It has nothing to do with the card's memory.",
    "message_proofs.on_chip_unsized": "A kernel asks for more of the chip's own memory or registers than one block may"
    " have. It has nothing to do with the card's memory.",
    "message_proofs.program_too_large": "The compiled program needs {requested:size}, the device has {total:size}: it"
    " does not fit even alone.",
    "message_proofs.jax_reserve": "{requested:size} was asked for in one piece; {free:size} is free in all.",
    "message_proofs.jax_reserve_only": "{requested:size} was asked for in one piece, and refused.",
    "message_proofs.jax_temporaries": "XLA's allocator could not serve the request, which is what the compiled program"
    " wants for its own temporaries.",
    "message_proofs.jax": "XLA's allocator could not serve the request.",
    "message_proofs.tensorflow": "TensorFlow's allocator could not serve the request.",
    "message_proofs.tensorflow_host": "TensorFlow's allocator for the machine's memory could not serve the request; the"
    " card is not involved.",
    "message_proofs.tensorflow_driver": (
        "The driver refused more memory to the allocator of TensorFlow, or of JAX, which prints the same line."
    ),
    "message_proofs.tensorflow_copy": "TensorFlow could not copy a tensor to a device. As a rule the device had no room"
    " for it; the message does not say so.",
    "message_proofs.went_on": "TensorFlow says itself that this is no failure.",
    "message_proofs.driver": "The driver itself refused; its own message has no figures.",
    "message_proofs.driver_free": "The driver itself refused, while {free:size} was free.",
    "message_proofs.video_memory": "It says that the GPU's memory had no room; whether the driver refused or the"
    " program's own allocator, it does not say.",
    "message_proofs.driver_sized": "The driver itself refused {requested:size}.",
    "message_proofs.driver_sized_free": "The driver itself refused {requested:size}, while {free:size} was free.",
    "message_proofs.other_code": "The driver refused an allocation, with a code that is not the one for memory.",
    "message_proofs.counting": "No tensor was asked for: the driver failed while devices were counted.",
    "message_proofs.library": "A call into a CUDA library failed; its status does not say that memory was short.",
    "message_proofs.library_alloc": "A CUDA library says that an allocation of its own failed.",
    "message_proofs.no_algorithm": "cuDNN found no way to run the convolution. With too little memory for its workspace"
    " it says the same as for shapes and types that it does not support.",
    "message_proofs.nccl_sized": "NCCL could not get {requested:size} from the driver, outside PyTorch's allocator.",
    "message_proofs.nccl": "NCCL asked the driver for memory outside PyTorch's allocator, and was refused.",
    "message_proofs.nccl_unhandled": "A CUDA call within NCCL failed; the message does not say that memory was short.",
    "message_proofs.nccl_other_reason": "A CUDA call within NCCL failed, and the error that it names is not the one for"
    " memory.",
    "message_proofs.dev_shm": "Shared memory of the machine (/dev/shm) ran out, where workers hand over batches; the"
    " card is not involved.",
    "message_proofs.dev_shm_likely": "A file of shared memory could not be written. As a rule /dev/shm was full, where"
    " workers hand over batches; the message does not say so for certain.",
    "message_proofs.bus_error": "A process ended with a bus error. As a rule /dev/shm was full, where workers hand over"
    " batches; the message does not say so for certain.",
    "message_proofs.host_sized": "{requested:size} of the machine's memory was refused; the card is not involved.",
    "message_proofs.limit_of_r": "R's own limit was reached: {allowed:size} in all, with {requested:size} requested. On"
    " Windows memory.limit() sets it.",
    "message_proofs.host_plain": "No card is named: this is how host memory fails.",
    "message_proofs.host_locked": "A buffer could not be kept from being swapped out: that has a limit of its own"
    " (ulimit -l), and no memory was short.",
    "message_proofs.host_errno": "The system refused memory (errno 12): as a rule the machine's, but a card's driver"
    " hands up the same code.",
    "message_proofs.host_by_driver": "The card's driver says that it got no memory of the machine; some say so of other"
    " failures as well.",
    "message_proofs.host_said": "It says that the machine's memory ran out; the card is not involved.",
    "message_proofs.host": "The machine's memory was refused; the card is not involved.",
    "message_proofs.pinned_sized": "{requested:size} of page-locked host memory was refused; the card need not be"
    " short.",
    "message_proofs.pinned": "Page-locked host memory was refused; the card need not be short.",
    "message_proofs.pinned_goes_on": "This is a warning: page-locked host memory was refused, and the program goes on"
    " with ordinary memory, which is slower to copy.",
    "message_proofs.pinned_other_reason": "Page-locked memory was not given, and the reason that is named is not a"
    " shortage of memory.",
    "message_proofs.killed_sized": "The kernel killed the process for want of host memory; it held {used:size}.",
    "message_proofs.killed_in_group": "The kernel killed the process at the memory limit of its group (container, job);"
    " it held {used:size}.",
    "message_proofs.killed_at_limit": "The kernel killed a process[ ({name}, pid {pid})] at the memory limit of its"
    " group (container, job).",
    "message_proofs.killed_of_machine": "The kernel killed a process[ ({name}, pid {pid})] because the machine's memory"
    " was short, not a group's limit.",
    "message_proofs.killed_by_kernel": "The kernel's OOM killer ran for want of host memory: the machine's, or that of"
    " one group (container, job).",
    "message_proofs.killed_over": "The job held {used:size} of host memory and may have {allowed:size}.",
    "message_proofs.killed_by_slurm": "The job reached its limit of host memory, and was killed for it.",
    "message_proofs.killed_by_yarn": "YARN killed a container of the job at its limit of memory.",
    "message_proofs.killed_of_step": "The kernel killed processes of a step of the job at a limit of host memory.",
    "message_proofs.killed_in_container": "The container was killed because host memory was short: its own limit, or"
    " the node.",
    "message_proofs.own_pool": "A pool of RAPIDS (RMM) reached its own limit; the card did not refuse.",
    "message_proofs.notebook": "The notebook's machine ran out of host memory, and its session was ended; the card is"
    " not involved.",
    "message_proofs.evicted": "Kubernetes ended the container because its node ran low on host memory; that is no limit"
    " of the container's own.",
    "message_proofs.killed_by_ray": "Ray killed what ran on a node that was short of host memory.",
    "message_proofs.killed_as_worker": "A worker came too close to its budget of host memory, and was ended for it.",
    "message_proofs.signal": "The process was killed with signal 9 (SIGKILL; a shell shows it as exit code 137)."
    " That is no CUDA error.",
    "message_proofs.killed_by_name": "It says that the process was killed because host memory was short; that is no"
    " CUDA error.",
    "message_proofs.killed_said": "It says that the process was killed; that is no CUDA error.",
    "message_proofs.only_a_warning": "This is a warning: nothing was refused.",
    "message_proofs.only_guesses": "The message lists what may have ended the process; which of them did, it does not"
    " say.",
    "message_proofs.killed_early": "A watchdog of the machine ended the process before host memory ran out.",
    "message_proofs.registers": "A kernel wants more registers or on-chip memory than a block may have; the card's"
    " memory is not short.",
    "message_proofs.planned": "The model was found not to fit onto the card before it was loaded: the card refused"
    " nothing.",
    "message_proofs.unknown_words": "It names memory, in words that oomscope does not know.",
    "message_proofs.unknown_words_card": "It says that a device's memory was short, in words that oomscope does not"
    " know.",
    "message_proofs.unknown_words_host": "It says that the machine's memory was short, in words that oomscope does not"
    " know.",
    "message_proofs.own_limit": "Its own limit was reached: {allocated:size} that it held and the {requested:size}"
    " requested are more than the {allowed:size} that it may hold.",
    "message_proofs.overflow": "No machine has that much: the number wrapped around, or comes of a wrong shape or"
    " length. It says nothing about how much memory was free.",
    "message_proofs.jemalloc_pages": "jemalloc, the program's allocator, was built for another page size than this"
    " machine's. It fails however much memory is free.",
    "message_proofs.pool_of_context": "ggml's pool would have to hold {needed:size} and has {pool:size}: the program"
    " made it too small, whatever memory is free.",
    "message_proofs.less_free": "{requested:size} was requested, {free:size} was free.",
    "message_proofs.named_program": "This is {program}'s own message, not PyTorch's.",
    "message_proofs.other_program": "This is another program's or library's message, not PyTorch's.",
}
