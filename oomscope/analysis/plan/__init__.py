"""What fits: peaks at other shapes and on other cards, from one to three recorded steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oomscope.allocator.config import AllocatorConfig
from oomscope.analysis.plan.alignment_notes import alignment_of, first_place, source_of
from oomscope.analysis.plan.cards import Card, cap, card, fit, largest, too_far
from oomscope.analysis.plan.growth.steps import filled
from oomscope.analysis.plan.kinds import guessable
from oomscope.analysis.plan.predicting import Peaks, at_peak, predict, unmatched_share, untold_share
from oomscope.analysis.plan.recordings import Recording, Shape, StackKeys, made_ready, nearest
from oomscope.analysis.plan.records import (
    Alignment,
    CardFit,
    Estimate,
    Largest,
    Plan,
    Prediction,
    Source,
)
from oomscope.analysis.plan.scaling import Scaled, scaled
from oomscope.analysis.plan.shapes import complete, parse_shape, parse_shapes
from oomscope.analysis.progress import Listener, silent
from oomscope.analysis.study import DeviceStudy, study_device
from oomscope.analysis.whatif import settings as tried
from oomscope.errors import RequestError
from oomscope.model import Note, Snapshot, note

__all__ = [
    "MOST_RECORDINGS",
    "Alignment",
    "CardFit",
    "Estimate",
    "Largest",
    "Plan",
    "Prediction",
    "Source",
    "parse_shape",
    "parse_shapes",
    "plan",
    "plan_of",
]

MOST_RECORDINGS = 3
MOST_ALONE = 0.25
"""Of the peak of a recording: what may lack a counterpart in the others. Kernels that come and go are far less."""
MOST_UNTOLD = 0.25
"""Of the peak of a recording: what may be of sizes that do not tell how they grow with what no recording varies."""


def plan(
    snapshots: Snapshot | Sequence[Snapshot],
    *,
    at: Shape | Sequence[Shape] = (),
    wanted: Shape | Sequence[Shape] = (),
    gpus: Sequence[str] = (),
    limits: Sequence[int] = (),
    settings: Sequence[str] = (),
    device: int | None = None,
) -> Plan:
    """The peaks of a recorded program at other shapes, and what fits which card.

    Args:
        snapshots: one to three recordings of the program.
        at: the shape of each, such as ``{"batch": 8, "seq": 512}``; empty: the recordings know theirs.
        wanted: the shapes to predict; empty: the recorded ones.
        gpus: cards, by size (``24GiB``) or name (``A100-40``).
        limits: caps of the process, in bytes. Where no card and no cap is asked for, that of the first recording.
        settings: of the allocator, each as in ``PYTORCH_ALLOC_CONF``; empty: as recorded.
        device: its CUDA index; None: the one with the longest trace.

    Raises:
        RequestError: the recordings cannot serve the request; the message says which one more would.
    """
    several = [snapshots] if isinstance(snapshots, Snapshot) else list(snapshots)
    studies = [(f"recording {number}", _study(one, device)) for number, one in enumerate(several, 1)]
    shapes, others = ([one] if isinstance(one, Mapping) else list(one) for one in (at, wanted))
    return plan_of(studies, at=shapes, wanted=others, gpus=gpus, limits=limits, settings=settings)


def _study(snapshot: Snapshot, device: int | None) -> DeviceStudy:
    if not snapshot.devices:
        raise RequestError("the snapshot holds no device, so there is nothing to predict from.")
    longest = max(snapshot.devices, key=lambda one: len(one.trace)).index
    return study_device(snapshot, longest if device is None else device)


def plan_of(
    studies: Sequence[tuple[str, DeviceStudy]],
    *,
    at: Sequence[Shape] = (),
    wanted: Sequence[Shape] = (),
    gpus: Sequence[str] = (),
    limits: Sequence[int] = (),
    settings: Sequence[str] = (),
    progress: Listener = silent,
) -> Plan:
    """The peaks of a recorded program at other shapes.

    Args:
        studies: one to three recordings, each with the name of its file.
        at: the shape of each recording; empty: the recordings know theirs.
        wanted: the shapes to predict; what one does not say is as in the first recording. Empty: the recorded ones.
        gpus: cards, by size (``24GiB``) or name (``A100-40``).
        limits: caps of the process, in bytes. Where no card and no cap is asked for, that of the first recording.
        settings: of the allocator, each as in ``PYTORCH_ALLOC_CONF``; empty: as recorded.
        progress: told how far it is.

    Raises:
        RequestError: the recordings cannot serve the request; the message says which one more would.
    """
    recordings = _made_ready(studies, at, progress)
    planner = _Planner(recordings).without_those_too_short()
    recordings = planner.recordings
    configs = _configs(recordings[0], settings)
    shapes = [complete(shape, planner.base, planner.parameters) for shape in wanted] or [
        complete(shape, planner.base, planner.parameters) for one in recordings for shape in one.shapes
    ]
    planner.check(shapes)
    planner.check_alignment()
    cards = [*map(card, gpus), *map(cap, limits)] or _recorded_cap(recordings[0])
    predictions = []
    for number, shape in enumerate(shapes):
        progress("replaying", number / (len(shapes) + len(cards)), _text(shape))
        predictions += [planner.prediction(shape, setting, config, cards) for setting, config in configs]
    found = []
    whole = not all(one.ends_early for one in recordings)
    for number, on in enumerate(cards if whole else ()):
        progress("replaying", (len(shapes) + number) / (len(shapes) + len(cards)), on.name)
        found += planner.largest(on, shapes, configs, predictions)
    return Plan(
        device=studies[0][1].index,
        sources=tuple(source_of(one) for one in recordings),
        parameters=planner.parameters,
        predictions=tuple(predictions),
        largest=tuple(found),
        alignment=alignment_of([planner.scaled_from(one) for one in recordings]),
        notes=planner.notes(),
    )


def _made_ready(studies: Sequence[tuple[str, DeviceStudy]], at: Sequence[Shape], progress: Listener) -> list[Recording]:
    if not 1 <= len(studies) <= MOST_RECORDINGS:
        raise RequestError(f"a plan takes one to {MOST_RECORDINGS} recordings, not {len(studies)}.")
    if at and len(at) != len(studies):
        raise RequestError(
            f"{len(studies)} recordings and {len(at)} shapes were given; give one --at for each file, in their order."
        )
    keys = StackKeys()
    recordings = []
    for number, (name, study) in enumerate(studies):
        progress("preparing", number / len(studies), name)
        recordings.append(made_ready(name, study, at[number] if at else None, keys))
    return recordings


def _recorded_cap(recording: Recording) -> list[Card]:
    """The cap that the program ran under, where the recording says so; an inferred one is no answer."""
    known = recording.subject.limit
    return [] if known.source != "recorded" or known.limit.cap is None else [cap(known.limit.cap)]


def _configs(recording: Recording, settings: Sequence[str]) -> list[tuple[str | None, AllocatorConfig]]:
    subject = recording.subject
    if not settings:
        return [(None, subject.config)]
    return [(text, tried.parse(text, subject.config, subject.release).config) for text in settings]


def _text(shape: Shape) -> str:
    return ", ".join(f"{name}={value}" for name, value in shape.items())


@dataclass(slots=True)
class _Planner:
    """Answers from a set of recordings; each is scaled once."""

    recordings: list[Recording]
    left_out: tuple[str, ...] = ()
    _scaled: dict[int, Scaled] = field(default_factory=dict)
    _peaks: dict[object, Peaks] = field(default_factory=dict)

    def without_those_too_short(self) -> _Planner:
        """Without runs that failed long before the peak of those that went on: they do not tell how that one grows."""
        whole = [one for one in self.recordings if not one.ends_early]
        if len(whole) in (0, len(self.recordings)):
            return self
        if all(unmatched_share(self.scaled_from(one)) <= MOST_ALONE for one in whole):
            return self
        self.check_alignment()
        return _Planner(whole, tuple(one.name for one in self.recordings if one.ends_early))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters, in the order in which they were told."""
        return tuple(dict.fromkeys(name for one in self.recordings for shape in one.shapes for name in shape))

    @property
    def base(self) -> Shape:
        """The shape that counts where nothing is said: the last of the first recording."""
        return self.recordings[0].shapes[-1]

    def check(self, shapes: Sequence[Shape]) -> None:
        """Refuse parameters whose effect nothing tells."""
        for shape in self._known:
            missing = [name for name in self.parameters if name not in shape]
            if missing:
                raise RequestError(f"not every recording says what {missing[0]} was; name it in each --at.")
        for name, share in self.untold.items():
            if all(shape[name] == self.base[name] for shape in shapes):
                continue
            same = f"{name}={self.base[name]}"
            if self.left_out:
                raise RequestError(
                    f"{self.left_out[0]} failed too early to tell how the peak depends on {name}; record one more "
                    f"run at another {name} that comes as far as the one at {same}."
                )
            why = f": {share:.0%} of the peak is of sizes that do not have {name} as a factor" if share < 1 else ""
            raise RequestError(
                f"how memory depends on {name} cannot be told from recordings that all have {same}{why}; record one "
                f"more step at another {name} and give it as well."
            )

    @property
    def _known(self) -> list[Shape]:
        """The shapes of all recordings."""
        return [shape for one in self.recordings for shape in one.shapes]

    @property
    def untold(self) -> dict[str, float]:
        """The parameters whose effect nothing tells, and the share of the peak of which that is so.

        No recording varies them, and neither their names nor the sizes say how these depend on them.
        """
        varied = {name: len({shape[name] for shape in self._known}) > 1 for name in self.parameters}
        found = dict.fromkeys(guessable(self.parameters, varied), 1.0)
        for name in self.parameters:
            if not varied[name] and name not in found:
                share = untold_share(self.scaled_from(self.recordings[0]), name)
                found |= {name: share} if share > MOST_UNTOLD else {}
        return found

    def check_alignment(self) -> None:
        """Refuse recordings of different programs.

        What follows the failure of all others has no counterpart, and need have none: theirs must have one in it.
        """
        for one in self.recordings:
            if not one.ends_early and all(other.ends_early for other in self.recordings if other is not one):
                continue
            alone = unmatched_share(self.scaled_from(one))
            if alone > MOST_ALONE:
                where = first_place(self.scaled_from(one))
                raise RequestError(
                    f"{one.name} and the other recordings do not look like the same program: {alone:.0%} of its peak "
                    f"has no counterpart in them{where}; give recordings that differ in nothing but the shape."
                )

    def scaled_from(self, recording: Recording) -> Scaled:
        """`recording` with models for its requests."""
        if id(recording) not in self._scaled:
            others = [one for one in self.recordings if one is not recording]
            self._scaled[id(recording)] = scaled(recording, others, self.parameters)
        return self._scaled[id(recording)]

    def scaled_for(self, shape: Shape) -> Scaled:
        """The recording that is nearest to `shape`, of those that did not end early if there are any.

        Where sizes grow in steps, of those that pad what this shape pads.
        """
        whole = [one for one in self.recordings if not one.ends_early] or self.recordings
        models = self.scaled_from(whole[0]).models
        owner = [(one, known) for one in whole for known in one.shapes]
        padded = filled(models, self._point(shape))
        alike = [len(padded & filled(models, self._point(known))) for _, known in owner]
        owner = [one for one, count in zip(owner, alike, strict=True) if count == max(alike)]
        return self.scaled_from(owner[nearest([known for _, known in owner], shape)][0])

    def _point(self, shape: Shape) -> tuple[float, ...]:
        return tuple(float(shape[name]) for name in self.parameters)

    def peaks(self, shape: Shape, config: AllocatorConfig) -> Peaks:
        """The peaks at `shape`, found once."""
        key = (tuple(shape.items()), config)
        if key not in self._peaks:
            self._peaks[key] = predict(self.scaled_for(shape), shape, config)
        return self._peaks[key]

    def prediction(self, shape: Shape, setting: str | None, config: AllocatorConfig, on: Sequence[Card]) -> Prediction:
        """The row of one shape and setting."""
        subject, peaks = self.scaled_for(shape), self.peaks(shape, config)
        categories, phase = at_peak(subject.recording, peaks.likely)
        cards = tuple(fit(subject, shape, peaks, config, one) for one in on)
        return Prediction(
            shape=shape,
            setting=setting,
            peak_allocated=peaks.allocated,
            peak_reserved=peaks.reserved,
            at_peak=categories,
            phase=phase,
            cards=cards,
            notes=_notes(subject, shape, peaks),
        )

    def largest(
        self,
        on: Card,
        shapes: Sequence[Shape],
        configs: Sequence[tuple[str | None, AllocatorConfig]],
        predictions: Sequence[Prediction],
    ) -> list[Largest]:
        """The largest value of each parameter whose effect is known, the others as first asked for.

        It is no smaller than what is predicted to fit. Where the others are too far off for anything to be said to fit,
        there is none.
        """
        found = []
        for setting, config in configs:
            fitting = [
                row.shape
                for row in predictions
                if row.setting == setting and any(one.gpu == on.name and one.fits for one in row.cards)
            ]
            for name in self.parameters:
                alike = [one[name] for one in fitting if {**shapes[0], name: one[name]} == one]
                far = too_far(self.scaled_for(shapes[0]), {**shapes[0], name: self.base[name]})
                if name not in self.untold and not far:
                    found.append(largest(self.scaled_for, config, setting, on, name, shapes[0], alike))
        return found

    def notes(self) -> tuple[Note, ...]:
        """What holds for all answers."""
        values = {name: {shape[name] for shape in self._known} for name in self.parameters}
        fixed = [name for name in self.parameters if len(values[name]) == 1 and name not in self.untold]
        found = [
            note("plan.not_varied", parameter=name, value=self.base[name]) for name in fixed if len(self._known) > 1
        ]
        found += [note("plan.not_told", parameter=name, value=self.base[name]) for name in self.untold]
        found += [
            note("plan.shape_from_tensors", file=one.name, batch=one.shapes[0]["batch"], tensors=one.inferred)
            for one in self.recordings
            if one.inferred
        ]
        found += [note("plan.failed_too_early", file=name) for name in self.left_out]
        if all(one.ends_early for one in self.recordings):
            found.append(note("plan.ends_early"))
        if any(not one.subject.complete for one in self.recordings):
            found.append(note("plan.late"))
        return tuple(found)


def _notes(subject: Scaled, shape: Shape, peaks: Peaks) -> tuple[Note, ...]:
    found = [note("plan.rests_on", file=subject.recording.name)]
    if too_far(subject, shape):
        found.append(note("plan.too_far"))
    if peaks.workspaces:
        found.append(note("plan.workspaces"))
    return tuple(found)
