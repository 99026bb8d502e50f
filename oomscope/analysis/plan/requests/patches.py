"""How many tokens a transformer makes of an image, where no halved side tells: patches, and a few tokens beside them.

Of 224 pixels in patches of 16 there are 196 and one more. Few widths have such a factor, so what it divides has it. An
encoder may see a part of the patches alone, a quarter of them, say.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np

from oomscope.analysis.plan.growth.token_models import BESIDE, NARROWEST, WIDEST
from oomscope.analysis.plan.requests.facts import Facts
from oomscope.analysis.plan.requests.scores import LEAST_ODD, odd_part, pixels
from oomscope.model import BoolArray, IntArray

LEAST_TOKENS = 26
NEARLY, LEAST_SHARE = 0.98, 0.25
"""Of the bytes that a forward makes: so much is made of such tokens at least."""
A_FEW, MOST_MORE = 16, 64
"""Of so many tokens one may be more than a sequence is said to have; and how many at most."""
LEAST_OF_ALL = 0.75
"""Of the bytes that a forward makes: so much is made of all tokens."""
LEAST_OF_A_PART, MOST_KINDS = 0.1, 2
"""Likewise, made of a part of the tokens that an encoder sees alone; and how many numbers of tokens there are."""
LEAST_LEARNED, MOST_LEARNED, SEVERAL = 8, 512, 64
"""Tokens beside the patches of an image that are learned; and of how many patches there is one of them at least."""
HALF = 2
"""Bytes of the smallest number of an activation."""


def tokens_of(facts: Facts, side: IntArray, samples: IntArray, free: BoolArray) -> IntArray:
    """int64[requests]: the tokens of an image of the side that each request was made at; 0: not known.

    Args:
        facts: what is known of each request.
        side: int64[requests], at which each was made; 0: not known.
        samples: int64[requests], likewise the batch; 0: not known, taken for one.
        free: bool[requests], which may depend on the side.
    """
    found = np.zeros(len(side), np.int64)
    for one in np.unique(side[free & (side > 1)]).tolist():
        rows = free & facts.forward & (side == one)
        total = float(facts.size[rows].sum())
        own, least = side == one, LEAST_SHARE
        for _ in range(MOST_KINDS):
            tokens = _most_usual(facts.size, rows, samples, _possible(one), least * total)
            if not tokens:
                break
            divided = made_of(facts.size, np.full(len(side), tokens), samples)
            found[own & ((found == 0) | divided)] = tokens
            own, rows, least = own & ~divided, rows & ~divided, LEAST_OF_A_PART
    return found


def with_learned_ones(facts: Facts, side: IntArray, samples: IntArray, free: BoolArray) -> IntArray:
    """int64[requests]: the tokens of an image of which many are no patches, as a detector's queries; 0: there are none.

    Nearly all that a forward makes has the factor of such a number, which no width has. Arguments as of `tokens_of`.
    """
    found = np.zeros(len(side), np.int64)
    for one in np.unique(side[free & (side > 1)]).tolist():
        rows = free & facts.forward & (side == one)
        patches = [(one // patch) ** 2 for patch in range(NARROWEST, WIDEST + 1) if one % patch == 0]
        possible = [
            count + more
            for count in patches
            for more in range(LEAST_LEARNED, MOST_LEARNED + 1)
            if more * SEVERAL > count
        ]
        rare = [count for count in possible if count >= LEAST_TOKENS and _is_rare(count, one, facts.vectors)]
        found[side == one] = _most_usual(facts.size, rows, samples, rare, LEAST_OF_ALL * float(facts.size[rows].sum()))
    return found


def with_a_few_more(facts: Facts, length: IntArray, samples: IntArray, free: BoolArray) -> list[IntArray]:
    """int64[requests], if any: the tokens of a sequence that is longer by a few, such as prompts or shifted codebooks.

    They have a factor that neither the length nor a width has, and most of what a forward makes has it, too. Arguments
    as of `tokens_of`.
    """
    found = np.ones(len(length), np.int64)
    for one in np.unique(length[free & (length > 1)]).tolist():
        rows = free & facts.forward & (length == one)
        most = one + min(one // A_FEW, MOST_MORE)
        more = [tokens for tokens in range(one + 1, most + 1) if _is_rare(tokens, one, facts.vectors)]
        if tokens := _most_usual(facts.size, rows, samples, more, LEAST_OF_ALL * float(facts.size[rows].sum())):
            found[length == one] = tokens
    return [found] if (found > 1).any() else []


def _is_rare(tokens: int, length: int, widths: Sequence[int]) -> bool:
    """Whether what so many tokens have as a factor beside the length is large, and a factor of no width."""
    factor = odd_part(tokens // gcd(tokens, length))
    return factor >= LEAST_ODD and all(width % factor for width in widths)


def _most_usual(size: IntArray, rows: BoolArray, samples: IntArray, possible: Sequence[int], least: float) -> int:
    """The number of tokens that divides most of `rows`, at least so many bytes of them; 0: there is none.

    Of those that divide as much, it is the one that has the rarest factor; of its multiples the smallest.
    """
    # Hundreds of numbers are possible, and most requests are of few sizes.
    each, times = np.unique(np.stack([size[rows], samples[rows]]), axis=1, return_counts=True)
    shares = {
        tokens: float((each[0] * times)[made_of(each[0], np.full(len(times), tokens), each[1])].sum())
        for tokens in possible
    }
    most = max(shares.values(), default=0.0)
    if not most >= least > 0:
        return 0
    fitting = [tokens for tokens, share in shares.items() if share >= NEARLY * most]
    return max(fitting, key=lambda tokens: (odd_part(tokens), -tokens))


def made_of(size: IntArray, tokens: IntArray, samples: IntArray) -> BoolArray:
    """bool[requests]: which are a whole number of values for each token."""
    each = np.maximum(samples, 1) * np.maximum(tokens, 1) * HALF
    return np.asarray((tokens > 0) & (size >= each) & (size % each == 0))


def _possible(side: int) -> list[int]:
    """Numbers of tokens with a factor that is rare, of patches that divide a side."""
    halved = pixels([side]) | {side * side}
    counts = [
        (side // patch) ** 2 + more for more in BESIDE for patch in range(NARROWEST, WIDEST + 1) if side % patch == 0
    ]
    return [
        one for one in dict.fromkeys(counts) if one >= LEAST_TOKENS and odd_part(one) >= LEAST_ODD and one not in halved
    ]
