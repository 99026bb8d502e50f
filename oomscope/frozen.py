"""`frozen`: what ``dataclass(frozen=True, slots=True)`` makes, for a fraction of what that costs to define.

A start of oomscope defines well over a hundred records. `dataclasses` writes and compiles six methods for each of them:
half a millisecond a record, and a fifth of ``oomscope summary``. Here `__init__` is compiled when the first record is
made, which for many is never, and the others need no source of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[Any], Any]:
        """Python 3.11 has it; only type checkers ask it."""
        return lambda decorator: decorator


_T = TypeVar("_T")


@overload
def frozen(cls: type[_T], /) -> type[_T]: ...
@overload
def frozen(*, eq: bool = True) -> Callable[[type[_T]], type[_T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Any] | None = None, /, *, eq: bool = True) -> Any:
    """Make `cls` a dataclass with slots whose records cannot be changed.

    Args:
        cls: a class that inherits from no other record.
        eq: whether records of equal values are equal; False for those of arrays, whose ``==`` has no one answer.
    """
    return (lambda cls: _made(cls, eq)) if cls is None else _made(cls, eq)


def _made(cls: type[Any], eq: bool) -> type[Any]:
    record: type[Any] = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    compared = [one.name for one in fields(record) if one.compare]
    methods = _METHODS | (_comparison(compared) if eq else {})
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(record, name, method)
    record.__init__ = _Initialiser(record)
    return record


class _Initialiser:
    """An `__init__` that is compiled when somebody first asks for it, and then stands in its own place."""

    def __init__(self, record: type[Any]) -> None:
        self._record = record

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        init = _compiled_init(self._record)
        self._record.__init__ = init
        return init.__get__(instance, owner)


class _Factory:
    """What stands in a signature for a value that is made anew each time."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _compiled_init(record: type[Any]) -> Any:
    """The function that `dataclass` would write, but that it fills the slots themselves."""
    known: dict[str, Any] = {"FACTORY": _FACTORY}
    parameters, lines = ["self"], []
    for one in fields(record):
        name, has_factory = one.name, one.default_factory is not MISSING
        known[f"_fill_{name}"] = vars(record)[name].__set__
        known[f"_default_{name}"] = _FACTORY if has_factory else one.default
        known[f"_make_{name}"] = one.default_factory
        if one.init:
            is_required = one.default is MISSING and not has_factory
            parameters.append(name if is_required else f"{name}=_default_{name}")
            value = f"_make_{name}() if {name} is FACTORY else {name}" if has_factory else name
        elif one.default is not MISSING or has_factory:
            value = f"_make_{name}()" if has_factory else f"_default_{name}"
        else:
            continue
        lines.append(f"_fill_{name}(self, {value})")
    if hasattr(record, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), known)  # noqa: S102
    init = known["__init__"]
    init.__qualname__ = f"{record.__qualname__}.__init__"
    init.__annotations__ = {one.name: one.type for one in fields(record) if one.init} | {"return": None}
    return init


def _repr(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


_METHODS: dict[str, Callable[..., Any]] = {
    "__repr__": _repr,
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _state,
    "__setstate__": _restore,
}


def _comparison(names: list[str]) -> dict[str, Callable[..., Any]]:
    """Equal where the class and all values are; the hash is that of the tuple of values."""
    values = _values(names)

    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return {"__eq__": equal, "__hash__": lambda self: hash(values(self))}


def _values(names: list[str]) -> Callable[[object], tuple[Any, ...]]:
    """What takes these attributes of a record, always as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)
