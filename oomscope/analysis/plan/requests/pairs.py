"""Models of pairs of tokens, as of the residues of a protein: what they make grows with the square of the length.

The sides of weights tell it: a linear layer has so many outputs for each row, and the rows are pairs.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.plan.recordings import Recording
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray

PAIRS, TRIANGLES = 2, 3
"""Degrees: of what each pair has, and of the scores by which pairs attend along a row."""
MATRIX = 2
"""Sides of the weight of a linear layer."""
MOST = 0.5
"""Of the bytes of linear layers: where more are of pairs, the model is one of pairs."""
MOST_HEADS = 64
LEAST_WIDTH = 16
"""Of pairs, where their rows may be wide ones of tokens as well."""
LEAST = 4096
"""Bytes below which it does not matter how a request grows."""
MASK = 4
"""Times as many bytes has a float32 as a truth value, of which a dropout keeps one for each."""
_FLOATS, _ITEM_SIZES = (4, 2), (4, 2, 8, 1)


@frozen(eq=False)
class Made:
    """What has to be known of requests.

    Attributes:
        size: int64[requests].
        linear: bool[requests], what linear layers make.
        forward: bool[requests], what a forward makes in a line of the program.
        dropout: bool[requests], what a dropout makes.
        sides: the sides of weights, as their sizes tell them: for recordings that do not have the shapes.
    """

    size: IntArray
    linear: BoolArray
    forward: BoolArray
    dropout: BoolArray
    sides: IntArray


def of_pairs(made: Made, recording: Recording, length: IntArray, samples: IntArray) -> tuple[BoolArray, BoolArray]:
    """bool[requests], twice: what is of pairs, and what is of triples.

    Args:
        made: what is known of each request.
        recording: it.
        length: int64[requests], at which each was made; 0: not known.
        samples: int64[requests], likewise; without any, one.
    """
    pairs, triples = np.zeros(len(length), np.bool_), np.zeros(len(length), np.bool_)
    widths = _sides(made, recording)
    if not len(widths):
        return pairs, triples
    linear = made.linear & made.forward & (made.size >= LEAST)
    for tokens in np.unique(length[linear & (length > 1)]).tolist():
        here = length == tokens
        rows = np.maximum(samples, 1) * tokens
        plain, paired = (_has_rows(made.size, each, widths, _FLOATS) for each in (rows, rows * tokens))
        if made.size[linear & here & paired].sum() > made.size[linear & here & plain].sum():
            # A length that is a power of two makes wide rows of tokens of rows of pairs: more is explained by these.
            plain &= ~_has_rows(made.size, rows * tokens, widths[widths >= LEAST_WIDTH], _FLOATS)
        square = linear & here & ~plain & paired
        if made.size[square].sum() <= MOST * made.size[linear & here].sum():
            continue
        large = here & (made.size >= LEAST) & ~plain
        cubic = large & (made.size > made.size[square].max())
        triples |= cubic & of_triples(made.size, length, samples)
        pairs |= large & ~triples & _divided(made.size, rows * tokens)
        scores = np.setdiff1d(made.size[pairs & here], made.size[here & ~pairs])
        pairs |= here & made.dropout & np.isin(made.size * MASK, scores)
    return pairs, triples


def of_triples(size: IntArray, length: IntArray, samples: IntArray) -> BoolArray:
    """bool[requests]: what has a few numbers, as many as heads, for three places of each sample."""
    return _has_rows(size, np.maximum(samples, 1) * length**TRIANGLES, np.arange(1, MOST_HEADS + 1), _FLOATS)


def may_be_of_pairs(made: Made, recording: Recording, length: IntArray, samples: IntArray) -> BoolArray:
    """bool[requests]: what has the square of the length as a factor, and not as much for each token as a layer makes.

    None where no linear layer makes something of pairs: that is chance. Arguments as of `of_pairs`.
    """
    widths, rows = _sides(made, recording), np.maximum(samples, 1) * length
    plain = _has_rows(made.size, rows, widths, _FLOATS)
    squared = (length > 1) & (made.size >= LEAST) & ~plain
    layers = squared & made.linear & made.forward & _has_rows(made.size, rows * length, widths, _FLOATS)
    lengths = np.unique(length[layers])
    return np.asarray(squared & np.isin(length, lengths) & (made.size % np.maximum(rows * length * _FLOATS[0], 1) == 0))


def _sides(made: Made, recording: Recording) -> IntArray:
    """The sides of matrices, where the recording has their shapes; else as sizes tell them."""
    tensors = recording.study.snapshot.recorded.tensors
    shapes = [one.shape for one in tensors if one.category == "parameter" and one.shape]
    found = np.unique([side for shape in shapes if len(shape) == MATRIX for side in shape])
    return found if shapes else made.sides


def _has_rows(size: IntArray, rows: IntArray, widths: IntArray, items: tuple[int, ...]) -> BoolArray:
    """Which are as large as so many rows of one of `widths`."""
    found = np.zeros(len(size), np.bool_)
    for item in items:
        each = np.maximum(rows * item, 1)
        found |= (size % each == 0) & np.isin(size // each, widths)
    return found


def _divided(size: IntArray, rows: IntArray) -> BoolArray:
    """Which so many rows divide, of elements of any size."""
    found = np.zeros(len(size), np.bool_)
    for item in _ITEM_SIZES:
        found |= size % np.maximum(rows * item, 1) == 0
    return found
