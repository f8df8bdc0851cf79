"""Make data classes without compiling methods for each of them.

The `dataclass` here has the standard one's meaning. That one compiles up to six functions for each class, in about 0.4
ms, and a job imports 80 such classes. Here they share one function for each method: a class takes 0.03 ms. To make an
object takes about 2 us longer.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, Field, FrozenInstanceError
from typing import TYPE_CHECKING, Any

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


class _Signature:
    """The signature of a class, which is made when somebody looks at it."""

    def __get__(self, instance: Any, cls: type) -> Any:
        from inspect import Parameter, Signature

        parameters = []
        for field in dataclasses.fields(cls):
            if field.init:
                default = field.default if field.default is not MISSING else field.default_factory
                parameters.append(
                    Parameter(
                        field.name,
                        Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
                        default=Parameter.empty if default is MISSING else default,
                        annotation=field.type,
                    )
                )
        return Signature(sorted(parameters, key=lambda parameter: parameter.kind), return_annotation=None)


def _fields(cls: type) -> dict[str, Field[Any]]:
    """Return the fields of a class by name."""
    known = cls.__dict__.get("_record_fields")
    if known is None:
        known = {field.name: field for field in dataclasses.fields(cls)}
        type.__setattr__(cls, "_record_fields", known)
    return known


def _init(self: Any, /, *given: Any, **named: Any) -> None:
    values = self.__dict__
    values.update(zip(self.__match_args__, given, strict=False))
    if len(given) > len(self.__match_args__) or (named and not named.keys().isdisjoint(values)):
        _refuse(self, given, named)
    values.update(named)
    left = len(named)
    for name, field in _fields(type(self)).items():
        if name in named:
            left -= field.init
        elif name in values:
            pass
        elif field.default is not MISSING:
            values[name] = field.default
        elif field.default_factory is not MISSING:
            values[name] = field.default_factory()
        elif field.init:
            _refuse(self, given, named)
    if left:
        _refuse(self, given, named)
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _refuse(self: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Raise the TypeError of a call with arguments that a class does not take."""
    try:
        type(self).__signature__.bind(*given, **named)
    except TypeError as error:
        raise TypeError(f"{type(self).__qualname__}() {error}") from None


def _repr(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name, field in _fields(type(self)).items() if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name, field in _fields(type(self)).items() if field.compare)


def _eq(self: Any, other: Any) -> bool:
    return _compared(self) == _compared(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _frozen(self: Any, name: str, value: Any = None) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r} of {type(self).__qualname__}: make a new one by replace()")
