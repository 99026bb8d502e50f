"""What the live bytes are, by name: the drivers of a shortage, largest first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oomscope.analysis.attribution.sites import SiteTable
from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.model_copies import find_duplicates
from oomscope.analysis.labels.phases import OPTIMIZER
from oomscope.analysis.labels.stack_roles import Mark, Role
from oomscope.analysis.records import Driver, Growth
from oomscope.analysis.study import DeviceStudy
from oomscope.history import DeviceHistory
from oomscope.model import BoolArray, Frame, IntArray

SLUGS = (
    "activations", "parameters", "gradients", "optimizer_state", "optimizer_temporaries", "logits", "attention_scores",
    "kv_cache", "retained_graph", "accumulated_tensors", "duplicate_model", "workspace", "unknown",
)  # fmt: skip
_SLUG_OF_CATEGORY = {
    kinds.PARAMETER: "parameters",
    kinds.BUFFER: "parameters",
    kinds.GRADIENT: "gradients",
    kinds.OPTIMIZER_STATE: "optimizer_state",
    kinds.ACTIVATION: "activations",
    kinds.TEMPORARY: "activations",
    kinds.INPUT: "activations",
    kinds.WORKSPACE: "workspace",
}
_LEAST_LOGITS = 1 << 20
_LEAST_CACHES = 4
"""Blocks; keys and values of two layers."""
_LEAST_LONGER = 1.25
"""By how much a batch must be larger than all before it, before growth says linear or square."""
_FASTER = 1.4
"""The power between linear and square; some of a larger batch may be more sequences, not longer ones."""
_LEAST_FRAMED = 0.25
"""Of a driver's bytes; with fewer from known lines, its site is the code without frames."""
_GRAPH_SHARE = 0.3
"""A kept graph keeps what its forwards saved: many of their stacks. A list of results keeps one or two."""


def find_drivers(study: DeviceStudy, at_entry: int, growth: tuple[Growth, ...] = ()) -> tuple[Driver, ...]:
    """What the allocated bytes are once `at_entry` has happened; they sum to the allocated curve there.

    Args:
        study: of the device.
        at_entry: the instant that it is about.
        growth: what grows until then; its sites are named by the way in which they grow.
    """
    history, sites = study.history, study.sites
    rows = np.flatnonzero(history.lifetimes.allocated_at(at_entry))
    slug = driver_numbers(study, rows, growth)
    found = [_driver(number, rows[slug == number], history, sites) for number in np.unique(slug).tolist()]
    return tuple(sorted(found, key=lambda driver: -driver.bytes))


def driver_numbers(study: DeviceStudy, rows: IntArray, growth: tuple[Growth, ...] = ()) -> IntArray:
    """int64[n]: the number in `SLUGS` of each of the lifetimes `rows`, int64[n], which are live together."""
    return _Naming(study, rows).run(growth)


def _driver(number: int, rows: IntArray, history: DeviceHistory, sites: SiteTable) -> Driver:
    """One driver, with the site that holds most of its bytes (None where next to nothing has frames)."""
    size = history.size[rows]
    site = sites.sites(history.lifetimes.stack[rows])
    values, where = np.unique(site, return_inverse=True)
    held = np.bincount(where, weights=size)
    if held[values >= 0].sum() >= _LEAST_FRAMED * held.sum():
        held[values < 0] = 0
    largest = int(values[np.argmax(held)])
    return Driver(SLUGS[number], int(size.sum()), sites.location(largest))


def _forward_around(frames: Sequence[Frame], level: int) -> int | None:
    """The frame of the module's forward that the frame `level` runs in; None outside any module."""
    for outer in range(level, len(frames) - 1):
        if frames[outer + 1].name.rpartition(".")[2] == "_call_impl":
            return outer
    return None


class _Naming:
    """The name of every live block: by its category first, then by what sets it apart within it."""

    def __init__(
        self,
        study: DeviceStudy,
        rows: IntArray,
    ) -> None:
        history, categories, phases = study.history, study.categories, study.phases
        self.history, self.sites, self.rows = history, study.sites, rows
        self.stacks, self.categories = study.snapshot.stacks, categories
        roles = self.roles = study.roles
        self.stack = history.lifetimes.stack[rows]
        self.mark = roles.mark[self.stack]
        self.role = roles.role[self.stack]
        self.category, self.phase = categories[rows], phases[rows]
        self.bytes = np.where(
            history.lifetimes.requested[rows] >= 0, history.lifetimes.requested[rows], history.size[rows]
        )
        self.slug = np.full(len(rows), SLUGS.index("unknown"), np.int64)

    def run(self, growth: tuple[Growth, ...]) -> IntArray:
        for category, slug in _SLUG_OF_CATEGORY.items():
            self._name(self.category == category, slug)
        temporary = (self.category == kinds.TEMPORARY) | (self.category == kinds.UNKNOWN)
        self._name(temporary & (self.phase == OPTIMIZER), "optimizer_temporaries")
        passing = np.isin(self.category, [kinds.ACTIVATION, kinds.TEMPORARY])
        self._name(passing & self._is_attention(passing), "attention_scores")
        self._name(passing & self._is_logits(passing), "logits")
        held = np.isin(self.category, [kinds.ACTIVATION, kinds.TEMPORARY, kinds.BUFFER, kinds.UNKNOWN])
        self._name(held & ((self.mark & Mark.CACHE) != 0), "kv_cache")
        self._name(self._is_reserved_cache(), "kv_cache")
        self._name(self._is_copy(), "duplicate_model")
        self._grown(growth)
        return self.slug

    def _name(self, chosen: BoolArray, slug: str) -> None:
        self.slug[chosen] = SLUGS.index(slug)

    def _is_logits(self, passing: BoolArray) -> BoolArray:
        """What a loss works on, what is as large in either precision and made as rarely, and the gradients of those."""
        loss = passing & ((self.mark & Mark.LOSS) != 0) & (self.role != Role.UNFRAMED)
        sizes = np.unique(self.bytes[loss & (self.bytes >= _LEAST_LOGITS)])
        if not len(sizes):
            return np.asarray(loss)
        alike = np.isin(self.bytes, np.concatenate([sizes, sizes // 2, sizes * 2]))
        count = np.bincount(self.stack[self.stack >= 0], minlength=1)
        most = int(count[self.stack[loss]].max())
        rare = (self.stack >= 0) & (count[np.maximum(self.stack, 0)] <= most + 1)
        chosen = loss | (passing & alike & rare)
        others = np.unique(self.bytes[passing & ~chosen & (self.stack >= 0)])
        gradient = passing & (self.stack < 0) & np.isin(self.bytes, np.setdiff1d(sizes, others))
        return np.asarray(chosen | gradient)

    def _is_attention(self, passing: BoolArray) -> BoolArray:
        """Tokens × tokens: what a function with linear layers makes that is far larger than all their outputs.

        In a function called attention one such block is enough; elsewhere it takes two of a size (scores and softmax),
        or one that is larger still. The linear layers may stand in the module's forward and the scores in a function
        that it calls; then two of a size prove nothing, for much else is called from there.
        """
        chosen = np.zeros(len(passing), np.bool_)
        linear = passing & ((self.mark & Mark.LINEAR) != 0)
        if not linear.any():
            return chosen
        named = (self.mark & Mark.ATTENTION) != 0
        for whole_module in (False, True):
            call = self._calls(passing, whole_module=whole_module)
            for one in np.unique(call[linear & (call >= 0)]).tolist():
                same = passing & (call == one)
                largest = int(self.bytes[same & linear].max())
                far = same & ~linear & (self.bytes >= max(1.5 * largest, _LEAST_LOGITS))
                sizes, count = np.unique(self.bytes[far], return_counts=True)
                twice = np.isin(self.bytes, sizes[count > 1]) & (not whole_module)
                chosen |= far & (named | twice | (self.bytes >= 4 * largest))
                chosen |= far & self._outgrows(same, linear, far & ~chosen)
        return chosen

    def _outgrows(self, same: BoolArray, linear: BoolArray, far: BoolArray) -> BoolArray:
        """Blocks of `far` whose lines grow faster from batch to batch than the linear layers of their call.

        Outputs grow with the number of tokens, scores with its square.
        """
        chosen = np.zeros(len(far), np.bool_)
        if not far.any():
            return chosen
        lifetimes = self.history.lifetimes
        past = (lifetimes.born >= 0) & (lifetimes.born < lifetimes.born[self.rows[same]].min())
        requested = np.where(lifetimes.requested >= 0, lifetimes.requested, self.history.size)
        is_linear = (self.roles.mark[lifetimes.stack] & Mark.LINEAR) != 0
        site, past_site = self.sites.sites(self.stack), self.sites.sites(lifetimes.stack)

        def grown(rows: BoolArray, past_rows: BoolArray) -> float:
            return float(self.bytes[rows].max()) / max(float(requested[past_rows].max(initial=0)), 1.0)

        linear_sites = np.unique(site[same & linear])
        tokens = grown(same & linear, past & is_linear & np.isin(past_site, linear_sites))
        for one in np.unique(site[far]).tolist():
            here = past & ~is_linear & (past_site == one)
            mine = far & (site == one)
            if here.any() and tokens >= _LEAST_LONGER and grown(mine, here) >= tokens**_FASTER:
                chosen |= mine
        return chosen

    def _calls(self, passing: BoolArray, *, whole_module: bool) -> IntArray:
        """A number for the call that each block's site stands in, of its function or of the module's forward around.

        It is -1 where there is no site, or no module around it.
        """
        number: dict[tuple[object, ...], int] = {}
        of_stack = np.full(len(self.stacks) + 1, -1, np.int64)
        for stack in np.unique(self.stack[passing & (self.stack >= 0)]).tolist():
            site = self.sites.location(int(self.sites.site_of[stack]))
            frames = self.stacks[stack]
            for level, frame in enumerate(frames):
                if site is not None and (frame.filename, frame.line, frame.name) == (
                    site.file,
                    site.line,
                    site.function,
                ):
                    end = _forward_around(frames, level) if whole_module else level
                    if end is not None:
                        call = (frames[end].filename, frames[end].name, frames[end + 1 :])
                        of_stack[stack] = number.setdefault(call, len(number))
                    break
        return np.asarray(of_stack[self.stack])

    def _is_reserved_cache(self) -> BoolArray:
        """Keys and values reserved in advance: equal blocks, two a layer, from one line, before any forward.

        Only where nothing trains, and a model is there to use them.
        """
        chosen = np.zeros(len(self.rows), np.bool_)
        all_roles = self.roles.role[self.history.lifetimes.stack]
        forwards = self.history.lifetimes.born[(all_roles == Role.FORWARD) & (self.history.lifetimes.born >= 0)]
        if not len(forwards) or not self._only_infers():
            return chosen
        early = (self.category == kinds.UNKNOWN) & (self.history.lifetimes.born[self.rows] < forwards.min())
        early &= self.stack >= 0
        for stack in np.unique(self.stack[early]).tolist():
            mine = early & (self.stack == stack)
            equal = len(np.unique(self.bytes[mine])) == 1 and np.count_nonzero(mine) >= _LEAST_CACHES
            if equal and self.bytes[mine].sum() >= 0.1 * self.bytes.sum():
                chosen |= mine
        return chosen

    def _only_infers(self) -> bool:
        """Whether there is a model and nothing trains it."""
        roles = self.roles.role[self.history.lifetimes.stack]
        trains = np.isin(roles, [Role.BACKWARD, Role.OPTIMIZER]).any()
        return not trains and bool(np.any(self.category == kinds.PARAMETER))

    def _is_copy(self) -> BoolArray:
        parameters = np.flatnonzero(self.slug == SLUGS.index("parameters"))
        chosen = np.zeros(len(self.rows), np.bool_)
        chosen[
            parameters[find_duplicates(self.history, self.categories, self.rows[parameters], self.stacks, self.sites)]
        ] = True
        return chosen

    def _grown(self, growth: tuple[Growth, ...]) -> None:
        """Name what grows by how: a graph that is kept, a cache, or a list of results."""
        growing = [(one, self._of(one)) for one in growth]
        generations = [rows for one, rows in growing if one.kind != "reallocation"]
        if generations:
            together = np.logical_or.reduce(generations)
            self._name(together, "retained_graph" if self._is_graph(together) else "accumulated_tensors")
        for one, rows in growing:
            if one.kind == "reallocation":
                # A model that joins a little to a tensor in every forward remembers its tokens; and so does a loop
                # around one that joins to a tensor for each layer.
                in_model = (self.role == Role.FORWARD) | ((self.mark & Mark.ATTENTION) != 0)
                alike = np.count_nonzero(10 * self.bytes[rows] >= 9 * self.bytes[rows].max(initial=0))
                if alike >= _LEAST_CACHES and self._only_infers():
                    in_model |= rows
                self._name(rows & ~in_model, "accumulated_tensors")
                self._name(rows & in_model, "kv_cache")
            self._name(rows & ((self.mark & Mark.CACHE) != 0), "kv_cache")

    def _of(self, growth: Growth) -> BoolArray:
        """The live blocks of a growing site that are no part of the model."""
        site, caller = self.sites.sites(self.stack), self.sites.callers(self.stack)
        kept = np.isin(self.category, [kinds.ACTIVATION, kinds.TEMPORARY, kinds.INPUT, kinds.UNKNOWN])
        pairs = np.unique(np.stack([site[kept], caller[kept]], axis=1), axis=0)
        same = np.zeros(len(self.rows), np.bool_)
        for one, other in pairs.tolist():
            if self.sites.location(one) == growth.site and self.sites.location(other) == growth.caller:
                same |= kept & (site == one) & (caller == other)
        return same

    def _is_graph(self, grown: BoolArray) -> bool:
        """Whether a good part of the stacks whose blocks a backward needs is among what grows."""
        forward = self.role == Role.FORWARD
        saved = np.unique(self.history.lifetimes.stack[self.categories == kinds.ACTIVATION])
        saved = saved[self.roles.role[saved] == Role.FORWARD]
        growing = np.unique(self.stack[grown & forward])
        return len(growing) >= 3 and len(growing) >= _GRAPH_SHARE * max(len(saved), 1)
