"""Quick dataclasses behave as the standard ones do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field
from typing import Any, ClassVar

import pytest

from oomscope import quick_dataclasses

WAYS = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"slots": True, "eq": False},
    {"frozen": True, "kw_only": True},
]


def made(decorator: Any, **how: bool) -> tuple[type, type, type]:
    """Three classes of one name each, made by `decorator`."""

    @decorator(**how)
    class Some:
        """Fields of all kinds."""

        first: int
        second: list[int]
        third: float = 0.5
        fourth: dict[str, int] = field(default_factory=dict)
        fifth: int = field(default=3, repr=False, compare=False)
        sixth: int | None = field(default=None, init=False, repr=False, compare=False)
        seventh: int = field(default=1, kw_only=True)
        count: ClassVar[int] = 7

        @property
        def twice(self) -> int:
            return 2 * self.first

    @decorator(**how)
    class One:
        """A single field, which may be what is equal to nothing."""

        value: object

    @decorator(**how)
    class None_:
        """No field."""

    return Some, One, None_


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_the_same_as_the_standard_one(how: dict[str, bool]) -> None:
    assert facts(*made(quick_dataclasses.dataclass, **how)) == facts(*made(dataclasses.dataclass, **how))


def facts(some: Any, one: Any, none: Any) -> list[Any]:
    """What can be seen of the classes and of some of their instances."""
    instances = [
        some(first=1, second=[2]),
        some(first=1, second=[2]),
        some(first=1, second=[2], third=1, fourth={"a": 1}, fifth=9, seventh=5),
        one(value=float("nan")),
        one(value=float("nan")),
        one(value=(1, 2)),
        none(),
        none(),
    ]
    signature = inspect.signature(some)
    return [
        [trial(lambda kind=kind: kind()) for kind in (some, one)],
        trial(lambda: some(1, [2], 0.25)),
        trial(lambda: some(1, [2], sixth=3)),
        trial(lambda: some(first=1, second=2, nobody=3)),
        [repr(instance) for instance in instances],
        [[left == right for left in instances] for right in instances],
        instances[0] == "another kind",
        [trial(lambda instance=instance: hash(instance) == hash(copy.copy(instance))) for instance in instances],
        trial(lambda: hash(one(value=(1, 2)))) if one.__dataclass_params__.eq else None,
        [trial(lambda name=name: setattr(instances[0], name, 5)) for name in ("first", "sixth")],
        trial(lambda: delattr(some(first=1, second=[]), "first")),
        trial(lambda: repr(dataclasses.replace(instances[1], third=8))),
        trial(lambda: repr(dataclasses.asdict(instances[1]))),
        [repr(copy.deepcopy(instance)) for instance in instances],
        [one.name for one in dataclasses.fields(some)],
        (some.__match_args__, some.__doc__, some.__name__, some.count, instances[1].twice, instances[1].sixth),
        [(name, str(given.kind), given.annotation) for name, given in signature.parameters.items()],
        [str(given.default) for given in signature.parameters.values()],
        hasattr(instances[1], "__dict__"),
        str(some.__dataclass_params__),
    ]


def trial(what: Any) -> Any:
    """What comes of a call, or how it fails."""
    try:
        return repr(what())
    except Exception as error:
        return type(error), str(error)


@quick_dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    """One that pickle can find."""

    first: int
    second: tuple[int, ...] = ()


@quick_dataclasses.dataclass(slots=True, eq=False)
class Checked:
    """One that looks at what it was given, and says itself what it is."""

    first: int

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError("negative")

    def __repr__(self) -> str:
        return "itself"

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None


def test_pickled() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        if protocol >= 2:  # the older ones refuse slots of all classes
            assert pickle.loads(pickle.dumps(Frozen(1, (2, 3)), protocol)) == Frozen(1, (2, 3))


def test_what_the_class_says_itself_stays() -> None:
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)
    assert repr(Checked(1)) == "itself"
    assert Checked(1) == 5


def test_below_another_dataclass() -> None:
    @quick_dataclasses.dataclass(frozen=True)
    class Below(Frozen):
        third: int = 3

    assert (Below(1), Below(1).third, Below(1) == Below(1, (), 3)) == (Below(1), 3, True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Below(1).first = 3  # type: ignore[misc]
