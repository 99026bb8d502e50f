"""Why a cause is not said with high confidence: what follows "medium confidence: "."""

from __future__ import annotations

from oomscope.wording.template import Sentence

DOUBTS: dict[str, Sentence] = {
    "doubts.limit": "the limit is known only as a range, and at its other end the cause may be another",
    "doubts.together": "several parts of the free memory would have been enough together, though none alone",
    "doubts.card": "the snapshot does not tell whether other processes fill the card",
    "doubts.served": "by these numbers a free piece was large enough; what refused it is not known",
    "doubts.cut": "the file was cut off, and what came after is not known",
    "doubts.claim": "the sums point to another cause first, which other numbers contradict",
    "doubts.earlier_failure": "the exception of an earlier failure may keep part of it alive",
    "doubts.not_needed": "{bytes:bytes} of it may not be needed any more; without that, the request would have fitted",
    "doubts.idle_model": "models that take no part in this pass hold {bytes:bytes}, which would have been enough",
    "doubts.other_models": "several lines call models, and the snapshot does not tell which parameters this one needs",
    "doubts.earlier_training": "{bytes:bytes} may be left over from earlier training, which would have been enough",
    "doubts.keeps_more": "the last pass held less when it asked for the same, and what has changed is not recorded",
    "doubts.last_pass": "{bytes:bytes} of the pass before are still alive, which would have been enough",
    "doubts.rising": "each pass needs more than the one before, and the recording does not tell why",
    "doubts.piled": "something piles up as well, though it would not have been enough alone",
    "doubts.rounding": "without the {bytes:bytes} lost to rounding the request would have fitted as well",
    "doubts.being_filled": "a buffer that is still being filled looks the same",
    "doubts.long_enough": "after [{joins:n join}][{passes:n pass/passes}] it may be complete, and in one piece the "
    "free memory would have been enough",
    "doubts.went_as_far": "an earlier loop like this made as many passes, and ended",
    "doubts.meant_to_grow": "it may be meant to grow (a cache, a store, results that are read later)",
    "doubts.models_in_use": "the program may still use some of the models that it holds",
    "doubts.not_steady": "not all of it is certain to go on rising",
    "doubts.trace_alone": "this is told from the trace alone, not from who refers to the memory",
    "doubts.no_module": "parameters outside any module may still be in use",
    "doubts.may_be_read": "code that is not running, or a later pass, may still read it",
    "doubts.storage_shared": "other tensors may still use the rest of its storage",
    "doubts.loop_fills": "a loop fills something as well, and may read it later",
    "doubts.pass_goes_on": "without it, the rest of this pass may still not have fitted",
    "doubts.beside_holes": "it would have been enough only together with the free memory in pieces",
    "doubts.little_to_spare": "only {bytes:bytes} would have been left over",
    "doubts.not_fitted_before": "no pass like this one has fitted before, so that it may need more than there is",
    "doubts.no_end": "what is being collected may have no end",
    "doubts.calls_at_once": "fewer calls at once would have been enough as well",
    "doubts.another_each_pass": "each pass needs a pool of its own, and how many more are to come is not known",
    "doubts.no_piece": "no single piece of it is known to be large enough",
    "doubts.sizes": "block sizes from before the recording may be off by {bytes:bytes}",
}
