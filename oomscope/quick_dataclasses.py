"""Dataclasses that cost a tenth as much to define, for a program that defines hundreds before it can do anything.

The standard decorator writes and compiles six methods for each class. This one shares all but ``__init__`` among the
classes, and compiles that when the first instance is made. What comes of it behaves the same: it is a dataclass for
`dataclasses.fields`, `replace` and ``match``, and its instances compare, hash, print, copy and pickle alike.
"""

from __future__ import annotations

import dataclasses
from inspect import Parameter, Signature
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen=False, slots=False, eq=True, kw_only=False):
        """Make a class a dataclass, as `dataclasses.dataclass` does.

        A class below another dataclass is left to that, for it has methods to inherit.
        """

        def made(cls):
            if any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:]):
                return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, kw_only=kw_only)(cls)
            own = set(vars(cls))
            quick = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
            _add_methods(quick, own, frozen=frozen, slots=slots, eq=eq)
            return quick

        return made


def _add_methods(cls: Any, own: set[str], *, frozen: bool, slots: bool, eq: bool) -> None:
    """Give `cls` what the standard decorator would, but for what the class itself has (`own`)."""
    parameters = cls.__dataclass_params__
    parameters.init = parameters.repr = True
    parameters.frozen, parameters.eq = frozen, eq
    methods: dict[str, Any] = {"__init__": _first_init(cls, frozen), "__repr__": _repr}
    if eq:
        compared = _values(tuple(field.name for field in dataclasses.fields(cls) if field.compare))
        methods["__eq__"] = _eq(compared)
        if "__hash__" not in own or ("__eq__" in own and cls.__hash__ is None):
            cls.__hash__ = _hash(compared) if frozen else None
    if frozen:
        methods["__setattr__"], methods["__delattr__"] = _refusing(cls)
    if frozen and slots:
        methods["__getstate__"], methods["__setstate__"] = _state, _set_state
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    if "__init__" not in own:
        cls.__signature__ = _SIGNATURE


def _first_init(cls: Any, frozen: bool) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        cls.__init__ = _compiled_init(cls, frozen)
        cls.__init__(self, *args, **kwargs)

    return __init__


def _compiled_init(cls: Any, frozen: bool) -> Any:
    """``__init__`` for the fields of `cls`, as fast as one that is written by hand."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_absent": _ABSENT}
    lines: list[str] = []
    plain: list[str] = []
    by_name: list[str] = []
    for field in dataclasses.fields(cls):
        name = value = field.name
        given = name
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _absent else {name}" if field.init else f"_make_{name}()"
            given = f"{name}=_absent"
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = field.default
            value = name if field.init else f"_default_{name}"
            given = f"{name}=_default_{name}"
        elif not field.init:
            continue
        if field.init:
            (by_name if field.kw_only else plain).append(given)
        lines.append(f" _set(_self, {name!r}, {value})" if frozen else f" _self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" _self.__post_init__()")
    given_all = ", ".join(["_self", *plain, *(["*", *by_name] if by_name else [])])
    exec("\n".join([f"def __init__({given_all}):", *(lines or [" pass"])]), names)  # noqa: S102 - names of fields alone
    init = names["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return init


class _Absent:
    """In place of an argument whose default a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_ABSENT = _Absent()


class _SignatureOfFields:
    """``__signature__`` of a class, for those who ask: ``__init__`` is not there before it is called."""

    def __get__(self, instance: object, owner: type) -> Signature:
        parameters = []
        for field in dataclasses.fields(owner):
            if not field.init:
                continue
            has_factory = field.default_factory is not dataclasses.MISSING
            default = _ABSENT if has_factory else field.default
            parameters.append(
                Parameter(
                    field.name,
                    Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
                    default=Parameter.empty if default is dataclasses.MISSING else default,
                    annotation=field.type,
                )
            )
        return Signature(sorted(parameters, key=lambda one: one.kind), return_annotation=None)


_SIGNATURE = _SignatureOfFields()


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _values(names: tuple[str, ...]) -> Any:
    """What gives the values of the fields `names` as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _eq(values: Any) -> Any:
    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(values: Any) -> Any:
    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return __hash__


def _refusing(cls: Any) -> tuple[Any, Any]:
    """``__setattr__`` and ``__delattr__`` of what is frozen; a class below may have attributes of its own."""

    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


def _state(self: Any) -> list[Any]:
    """What is pickled: slots have no ``__dict__`` to be taken."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
