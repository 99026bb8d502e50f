"""How many tokens a text has that stands beside an image, by what embeds them: its length does not grow with the side.

An embedding makes one row of a known width for each token, and its input has one whole number for each.
"""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.plan.requests.facts import Facts
from oomscope.model import IntArray, package_path

LEAST_LENGTH = 4
"""Tokens; fewer are classes, or moments of a diffusion."""
FLOATS, WHOLE = (4, 2), (8, 4)
"""Bytes of a number of a row, and of a token."""
_EMBEDS = re.compile(r"^torch/nn/functional\.py$")


def lengths_of_texts(facts: Facts, samples: IntArray) -> set[int]:
    """The tokens a sample of each text that the program embeds.

    Args:
        facts: what is known of each request.
        samples: int64[requests], the batch at which each was made; 0: not known, taken for one.
    """
    stacks = facts.study.snapshot.stacks
    embeds = [
        any(one.name == "embedding" and _EMBEDS.match(package_path(one.filename) or "") for one in stacks[row][:2])
        for row in range(len(stacks))
    ]
    made = np.flatnonzero(np.array([*embeds, False])[facts.stack] & facts.forward)
    inputs = set(facts.size[facts.inputs].tolist())
    found = set()
    for size, batch in set(zip(facts.size[made].tolist(), np.maximum(samples[made], 1).tolist(), strict=True)):
        for width in facts.widths:
            for item in FLOATS:
                tokens, rest = divmod(size, width * item)
                if not rest and not tokens % batch and any(tokens * whole in inputs for whole in WHOLE):
                    found.add(tokens // batch)
    return {one for one in found if one >= LEAST_LENGTH}
