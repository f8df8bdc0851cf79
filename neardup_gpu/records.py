"""Make data classes without compiling methods for each of them.

The `dataclass` here has the standard one's meaning. That one compiles up to six functions for each class, in about 0.4
ms, and a job imports 80 such classes. Here they share one function for each method: a class takes 0.03 ms. To make an
object takes about 1.5 us longer.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, Field, FrozenInstanceError
from inspect import Parameter, Signature
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        eq: bool = True,
        repr: bool = True,
        kw_only: bool = False,
    ) -> Any:
        """Make a class a data class, as `dataclasses.dataclass` does."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, repr=repr, kw_only=kw_only)
        of_frozen = frozen and hasattr(cls, "__dataclass_fields__")  # the standard one insists on it in derived classes
        dataclasses.dataclass(init=False, repr=False, eq=False, frozen=of_frozen, kw_only=kw_only)(cls)
        cls.__dataclass_params__.frozen = frozen
        methods = {"__init__": _init, "__signature__": _Signature()}
        if repr:
            methods["__repr__"] = _repr
        if eq:
            methods |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
        if frozen:
            methods |= {"__setattr__": _frozen, "__delattr__": _frozen}
        for name, method in methods.items():
            if name not in cls.__dict__ or cls.__dict__[name] is None:  # `__hash__` is None beside an `__eq__`
                setattr(cls, name, method)
        return cls


Given = TypeVar("Given")
Held = TypeVar("Held")


class Converted(Generic[Given, Held]):
    """Annotate a field that is given as one type, and that `__post_init__` replaces by a value of another one.

    Type checkers take it for a descriptor, and so know both types. When the program runs, the field has its default.
    """

    if TYPE_CHECKING:

        def __init__(self, default: Given) -> None: ...
        def __get__(self, instance: object, owner: type | None = None) -> Held: ...
        def __set__(self, instance: object, value: Given) -> None: ...

    else:

        def __new__(cls, default: Any) -> Any:
            """Return the default."""
            return default


class _Signature:
    """The signature of a class, which is made when somebody looks at it."""

    def __get__(self, instance: Any, cls: type) -> Any:
        parameters = []
        for field in dataclasses.fields(cls):
            if field.init:
                default = Parameter.empty if field.default is MISSING else field.default
                if _is_made(field):
                    default = _FACTORY
                kind = Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD
                parameters.append(Parameter(field.name, kind, default=default, annotation=field.type))
        return Signature(sorted(parameters, key=lambda parameter: parameter.kind), return_annotation=None)


class _FactoryDefault:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _FactoryDefault()
"""The default that a signature shows for a field whose default is made for each object."""


class _KnownOfClass(NamedTuple):
    """Hold what the shared functions know of a class.

    fields : dict from str to Field
    positions : tuple of str
        Fields that may be given by position.
    defaults : dict
        The defaults of fields that have them.
    factories : list of (str, callable)
    unnamed : frozenset of str
        Fields that no argument sets.
    needed : set of str
        Fields that have a value before `__post_init__` is called.
    then : callable or None
        That method.
    compared : callable
        Returns what `==` and `hash` look at.
    """

    fields: dict[str, Field[Any]]
    positions: tuple[str, ...]
    defaults: dict[str, Any]
    factories: list[tuple[str, Any]]
    unnamed: frozenset[str]
    needed: set[str]
    then: Any
    compared: Any


def _known(cls: Any) -> _KnownOfClass:
    """Return what is known of a class; it is found out when it is first needed."""
    if "__dataclass_known__" not in cls.__dict__:
        fields = {field.name: field for field in dataclasses.fields(cls)}
        defaults = {name: field.default for name, field in fields.items() if field.default is not MISSING}
        factories = [(name, field.default_factory) for name, field in fields.items() if _is_made(field)]
        unnamed = frozenset(name for name, field in fields.items() if not field.init)
        needed = (fields.keys() - unnamed) | defaults.keys() | dict(factories).keys()
        then = getattr(cls, "__post_init__", None)
        compared = [name for name, field in fields.items() if field.compare]
        look = attrgetter(*compared) if compared else lambda _: ()
        known = _KnownOfClass(fields, cls.__match_args__, defaults, factories, unnamed, needed, then, look)
        type.__setattr__(cls, "__dataclass_known__", known)
    return cls.__dict__["__dataclass_known__"]


def _is_made(field: Field[Any]) -> bool:
    return field.default_factory is not MISSING


def _init(self: Any, /, *given: Any, **named: Any) -> None:
    known = _known(type(self))
    values = dict(zip(known.positions, given, strict=False))
    values.update(named)
    if len(values) != len(given) + len(named) or not known.unnamed.isdisjoint(named):
        _refuse(self, given, named)
    values = known.defaults | values
    for name, make in known.factories:
        if name not in values:
            values[name] = make()
    if values.keys() != known.needed:
        _refuse(self, given, named)
    object.__setattr__(self, "__dict__", values)
    if known.then is not None:
        known.then(self)


def _refuse(self: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Raise the TypeError of a call with arguments that a class does not take."""
    try:
        type(self).__signature__.bind(*given, **named)
    except TypeError as error:
        raise TypeError(f"{type(self).__qualname__}() {error}") from None


def _repr(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name, field in _known(type(self)).fields.items() if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> bool:
    look = _known(type(self)).compared
    return look(self) == look(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_known(type(self)).compared(self))


def _frozen(self: Any, name: str, value: Any = None) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r} of {type(self).__qualname__}: make a new one by replace()")
