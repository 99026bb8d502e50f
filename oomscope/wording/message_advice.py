"""What the advice in a message is worth where it stands, in words."""

from __future__ import annotations

from oomscope.wording.template import Sentence

MESSAGE_ADVICE: dict[str, Sentence] = {
    "message_advice.cannot_help": "{advice} cannot help: only {inside:size} lay unallocated inside PyTorch.",
    "message_advice.none_inside": "{advice} cannot help: by the printed sizes, nothing lay unallocated inside PyTorch.",
    "message_advice.empty_cache": "{advice}: at most {inside:size} could be handed back, and unused segments already"
    " were before the error.",
    "message_advice.fits_here": "{advice} may help, if the {inside:size} that lay free inside PyTorch belong to no"
    " other stream or pool.",
    "message_advice.fits_here_on_rocm": "{advice} may help where the release of PyTorch for ROCm has it, if the"
    " {inside:size} that lay free inside PyTorch belong to no other stream or pool.",
    "message_advice.speaks_for": "{advice} might help: the {inside:size} that lay unallocated inside PyTorch and the"
    " card's free bytes are more than {requested:size} together.",
    "message_advice.not_on_windows": "{advice}: most releases of PyTorch for Windows ignore it.",
    "message_advice.might_help": "{advice} might help: only with the card's free bytes do the {inside:size}"
    " unallocated reach {requested:size}.",
    "message_advice.beside_the_point": "{advice}: the figures do not show that fragmentation was the reason.",
    "message_advice.undecided": "{advice}: the figures neither rule it out nor speak for it.",
    "message_advice.high_watermark": "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 takes the limit away, not the need: the"
    " machine may then swap or hang.",
    "message_advice.utilization": "gpu_memory_utilization would have to be at most {share} to start beside what is"
    " there; else free the card.",
    "message_advice.utilization_host": "gpu_memory_utilization, which is the share of the machine's memory here, would"
    " have to be at most {share} to start beside what is there.",
    "message_advice.shorter": "max_model_len {fits:count} or less fits, as the engine estimates.",
    "message_advice.more_cache": "The cache would need {missing:size} more.",
    "message_advice.raise_utilization": "Raising gpu_memory_utilization helps only if the card has more that is free.",
    "message_advice.blocking": "CUDA_LAUNCH_BLOCKING=1 usually makes the named line reliable; it saves no memory, and"
    " neither does TORCH_USE_CUDA_DSA.",
    "message_advice.smaller_blocks": "Smaller block sizes or fewer num_stages may help, as it says.",
    "message_advice.heap": "NODE_OPTIONS=--max-old-space-size=MIB raises the heap's limit, where the machine has more.",
    "message_advice.java_heap": "A larger -Xmx raises the heap's limit, where the machine has more.",
    "message_advice.raise_shm": "A larger /dev/shm (docker run --shm-size) or fewer DataLoader workers help.",
}
