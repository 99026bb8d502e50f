"""A program that can be changed: when each request is made and given back, and how large it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oomscope.allocator.program import Op, Program
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray

SPACING = 8
"""Room between two recorded steps, so that others can be put in between."""
NEVER = np.iinfo(np.int64).max // 4
"""The end of what is still there when the trace ends."""
AT_ONCE = 2
"""How far behind a moment something ends that is given back at once."""


@frozen(eq=False)
class Draft:
    """Requests as intervals of moments. A moment is a recorded step's number times `SPACING`, or between two of them.

    Attributes:
        program: what was recorded.
        size, begin, end: int64[requests]: bytes, and when each is made and given back; the recorded requests come
            first. What has no bytes is not asked for.
        stream, owner: as in `Program`.
        tried: bool[requests], which were refused.
        source: int64[requests]: the recorded request that each is, or is made again for; -1 where it is for none.
    """

    program: Program
    size: IntArray
    begin: IntArray
    end: IntArray
    stream: IntArray
    owner: IntArray
    tried: BoolArray
    source: IntArray

    @classmethod
    def of(cls, program: Program) -> Draft:
        """The recorded program. What waited for another stream is given back when that was asked for."""
        begin = np.full(program.requests, NEVER, np.int64)
        end = np.full(program.requests, NEVER, np.int64)
        moment = np.arange(len(program.op), dtype=np.int64) * SPACING
        for ops, column in (((Op.MALLOC, Op.TRY_MALLOC), begin), ((Op.FREE, Op.FREE_REQUESTED), end)):
            rows = np.isin(program.op, ops)
            column[program.argument[rows]] = moment[rows]
        tried = np.zeros(program.requests, np.bool_)
        tried[program.argument[program.op == Op.TRY_MALLOC]] = True
        return cls(
            program, program.size.copy(), begin, end, program.stream, program.owner, tried, np.arange(program.requests)
        )

    def __len__(self) -> int:
        return len(self.size)

    def without(self, dropped: BoolArray) -> Draft:
        """The draft in which the `dropped` are not asked for."""
        return replace(self, size=np.where(self._wide(dropped), 0, self.size))

    def scaled(self, factor: object, rows: BoolArray) -> Draft:
        """The draft in which `rows` are `factor` as large: a number, or float64[rows]."""
        size = self.size.astype(np.float64)
        wide = self._wide(rows)
        size[wide] = np.maximum(np.round(size[wide] * np.asarray(factor, np.float64)), 1)
        return replace(self, size=np.where(self.size > 0, size, 0).astype(np.int64))

    def lasting(self, rows: IntArray, *, begin: IntArray | None = None, end: IntArray | None = None) -> Draft:
        """The draft in which the numbered `rows` are made or given back at other moments."""
        begins, ends = self.begin.copy(), self.end.copy()
        if begin is not None:
            begins[rows] = begin
        if end is not None:
            ends[rows] = end
        return replace(self, begin=begins, end=ends)

    def added(self, size: IntArray, begin: IntArray, end: IntArray, source: IntArray | None = None) -> Draft:
        """The draft with more requests, on the first stream; `source` tells for which recorded ones, None: for none."""
        stream = self.stream[0] if len(self.stream) else 0
        return replace(
            self,
            size=np.concatenate([self.size, size]),
            begin=np.concatenate([self.begin, begin]),
            end=np.concatenate([self.end, end]),
            stream=np.concatenate([self.stream, np.full(len(size), stream, np.int64)]),
            owner=np.concatenate([self.owner, np.zeros(len(size), np.int64)]),
            tried=np.concatenate([self.tried, np.zeros(len(size), np.bool_)]),
            source=np.concatenate([self.source, np.full(len(size), -1, np.int64) if source is None else source]),
        )

    def to_program(self) -> Program:
        """What can be replayed."""
        made = np.flatnonzero((self.size > 0) & (self.begin < NEVER) & (self.end > self.begin))
        ends = made[(self.end[made] < NEVER) & ~self.tried[made]]
        kept = np.flatnonzero(np.isin(self.program.op, (Op.EMPTY_CACHE, Op.POOL_FREEABLE)))
        op = np.concatenate(
            [np.where(self.tried[made], Op.TRY_MALLOC, Op.MALLOC), np.full(len(ends), Op.FREE), self.program.op[kept]]
        )
        argument = np.concatenate([made, ends, self.program.argument[kept]])
        moment = np.concatenate([self.begin[made], self.end[ends], kept * SPACING])
        # Of what happens at one moment, what is given back comes first.
        order = np.lexsort((op == Op.MALLOC, moment))
        step = np.clip(moment[order] // SPACING, 0, max(len(self.program.entry) - 1, 0))
        return Program(
            size=np.maximum(self.size, 1),
            stream=self.stream,
            owner=self.owner,
            op=op[order].astype(np.uint8),
            argument=argument[order],
            entry=self.program.entry[step],
            pools=self.program.pools,
        )

    def _wide(self, rows: BoolArray) -> BoolArray:
        """`rows` of the recorded requests as rows of all."""
        wide = np.zeros(len(self), np.bool_)
        wide[: len(rows)] = rows
        return wide
