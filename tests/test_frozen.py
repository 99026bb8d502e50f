"""`frozen` makes what `dataclass` makes: the same is asked of both."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

from oomscope.frozen import frozen


def values(make: Callable[[Any], Any]) -> Any:
    class Values:
        """Some values."""

        size: int
        name: str = "none"
        parts: list[int] = field(default_factory=list)
        hidden: int = field(default=3, repr=False, compare=False)
        twice: int = field(init=False, compare=False)
        kept: list[int] = field(default_factory=list, init=False)
        zero: int = field(default=0, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", 2 * self.size)

        @property
        def half(self) -> float:
            return self.size / 2

    return make(Values)


def one_value(make: Callable[[Any], Any]) -> Any:
    class One:
        """One value."""

        value: Any

        def __str__(self) -> str:
            return "one"

    return make(One)


def no_value(make: Callable[[Any], Any]) -> Any:
    class Empty:
        """None."""

    return make(Empty)


def named(make: Callable[[Any], Any]) -> Any:
    class Named:
        """One that says what it is itself."""

        value: int

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    return make(Named)


STANDARD = dataclass(frozen=True, slots=True)
BY_IDENTITY = dataclass(frozen=True, slots=True, eq=False)

NAN = float("nan")
MADE: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (values, (4,), {}),
    (values, (4, "a", [1]), {}),
    (values, (), {"size": 4, "hidden": 5}),
    (one_value, (NAN,), {}),
    (one_value, ("a",), {}),
    (no_value, (), {}),
    (named, (1,), {}),
]


@pytest.mark.parametrize(("recipe", "arguments", "keywords"), MADE)
def test_records_say_and_hold_the_same(
    recipe: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    ours, theirs = recipe(frozen), recipe(STANDARD)
    one, other = ours(*arguments, **keywords), theirs(*arguments, **keywords)
    assert repr(one) == repr(other)
    assert str(one) == str(other)
    assert [getattr(one, each.name) for each in fields(ours)] == [getattr(other, each.name) for each in fields(theirs)]
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__
    assert not hasattr(one, "__dict__")
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__init__.__qualname__ == theirs.__init__.__qualname__


@pytest.mark.parametrize("options", [{}, {"eq": True}, {"eq": False}])
@pytest.mark.parametrize(("recipe", "arguments", "keywords"), MADE)
def test_records_are_equal_where_those_of_dataclass_are(
    recipe: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any], options: dict[str, bool]
) -> None:
    answers = []
    for cls in (
        recipe(frozen(**options) if options else frozen),
        recipe(dataclass(frozen=True, slots=True, **options)),
    ):
        one, same = cls(*arguments, **keywords), cls(*arguments, **keywords)
        different = cls(*((9,) if arguments or keywords else ()))
        assert one.__eq__(object()) in (NotImplemented, True)
        answers.append((one == one, one == same, one == different, one != different, one == arguments))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("arguments", [(4, "a", ()), (5, "b", (1, 2))])
def test_the_hash_is_that_of_dataclass(arguments: tuple[Any, ...]) -> None:
    def recipe(make: Callable[[Any], Any]) -> Any:
        class Key:
            """Something to look up."""

            size: int
            name: str
            path: tuple[int, ...]

        return make(Key)

    assert hash(recipe(frozen)(*arguments)) == hash(recipe(STANDARD)(*arguments))
    assert hash(one_value(frozen)("a")) == hash(one_value(STANDARD)("a"))
    assert hash(no_value(frozen)()) == hash(no_value(STANDARD)())
    with pytest.raises(TypeError, match="unhashable"):
        hash(one_value(frozen)([]))


def test_records_by_identity_have_a_hash_whatever_they_hold() -> None:
    for cls in (values(frozen(eq=False)), values(BY_IDENTITY)):
        one, other = cls(1), cls(1)
        assert len({one, other}) == 2


def test_nothing_of_a_record_can_be_changed() -> None:
    one = values(frozen)(4)
    for name in ("size", "hidden", "unknown"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(one, name, 1)
        with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(one, name)
    assert one.size == 4


def test_a_changed_copy_passes_through_the_same_init() -> None:
    one = replace(one_value(frozen)(1), value=2)
    assert one.value == 2

    def recipe(make: Callable[[Any], Any]) -> Any:
        class Pair:
            """Two."""

            first: int
            second: list[int] = field(default_factory=list)

        return make(Pair)

    cls = recipe(frozen)
    assert replace(cls(1, [2]), first=3) == cls(3, [2])
    assert cls(1).second is not cls(1).second


@pytest.mark.parametrize("arguments", [(), (1, 2, 3, 4, 5)])
def test_wrong_arguments_are_refused_in_the_same_words(arguments: tuple[Any, ...]) -> None:
    said = []
    for cls in (values(frozen), values(STANDARD)):
        with pytest.raises(TypeError) as refused:
            cls(*arguments)
        said.append(str(refused.value))
    assert said[0] == said[1]


@frozen
class Found:
    """What pickle finds by its name."""

    size: int
    parts: list[int] = field(default_factory=list)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_records_can_be_pickled_and_copied(protocol: int) -> None:
    one = Found(4, [1])
    assert pickle.loads(pickle.dumps(one, protocol)) == one
    assert copy.copy(one) == one
    copied = copy.deepcopy(one)
    assert copied == one
    assert copied.parts is not one.parts


def test_init_is_compiled_once_and_only_when_it_is_asked_for() -> None:
    cls = one_value(frozen)
    assert not inspect.isfunction(vars(cls)["__init__"])
    cls(1)
    init = vars(cls)["__init__"]
    assert inspect.isfunction(init)
    cls(2)
    assert vars(cls)["__init__"] is init
