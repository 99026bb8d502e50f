"""What each number of the evidence counts."""

from __future__ import annotations

from oomscope.wording.template import Sentence

CAUSE_NOUNS = {
    "growth": "what finished passes left behind",
    "retained": "what nothing uses any more",
    "private_pools": "private pools",
    "other_stream": "other streams",
    "outside_allocator": "what others hold on the card",
    "fragmentation": "fragmentation",
}

EVIDENCE: dict[str, Sentence] = {
    "request": "Asked for, in one piece",
    "reserved": "Reserved by PyTorch when it failed",
    "active": "In use when it failed",
    "limit": "The most this process could reserve",
    "limit_of_device": "The most it could reserve, with what the device had free",
    "lower_bound": "Lower bound of the limit: the most ever reserved",
    "upper_bound": "Upper bound of the limit: an amount that was refused",
    "usable": "Free where the request may look (same pool, stream and size class)",
    "largest": "Largest free piece there",
    "largest_with_pages": "Largest free piece there, with the pages that could be mapped behind it",
    "left_in_one_piece": "To spare, had all of that been one piece",
    "short_in_one_piece": "Short even if all of that had been one piece",
    "without": lambda values: f"To spare without {CAUSE_NOUNS.get(values['cause'], values['cause'])}",
    "without_at_higher_cap": lambda values: (
        f"To spare without {CAUSE_NOUNS.get(values['cause'], values['cause'])}, if the cap is as high as it can be"
    ),
    "grown": "Left behind by finished passes",
    "retained": "Kept alive only by what the program has finished with",
    "opened": "Came free in one piece while the request waited",
    "walled": "Free inside private pools, where the request may not look",
    "other_streams": "Free, but of other streams",
    "pending": "Freed, but waiting for another stream",
    "other_class": "Free in the other size class",
    "outside": "On the card, but not PyTorch's",
    "total": "The whole card",
    "cap": "Cap of this process",
}
