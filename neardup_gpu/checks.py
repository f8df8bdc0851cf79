"""Check the arguments of public functions. Each check exists once, and its message is a line that names the argument.

A wrong value raises a ParameterError (also a ValueError), a wrong type an ArgumentTypeError (also a TypeError). Each
check returns the argument in the form that the package works with: NumPy's integers as Python's, lists as arrays, and
arrays contiguous in this machine's byte order. A check never rounds, cuts or wraps a value: it refuses a value that the
wanted type cannot hold exactly. Arrays on a GPU stay there, and only verdicts come to the host.
"""

from __future__ import annotations

import math
import numbers
import operator
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .errors import ArgumentTypeError, ParameterError
from .report import shorten

T = TypeVar("T")


def shown(value: Any) -> str:
    """Return a value as a message shows it: a small value whole, a text shortened, any other value as its type."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"an integer of {value.bit_length():,} bits"
    if value is None or isinstance(value, (bool, int, float, str, bytes, os.PathLike)):
        text = value[:100] if isinstance(value, (str, bytes)) else value
        return shorten(repr(text), 60)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{_article(type(value).__name__)} of {value.dtype} of shape {_shape(value.shape)}"
    return _article(type(value).__name__)


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' or noun == 'ndarray' else 'a'} {noun}"


def _shape(shape: Any) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _bound(value: float) -> str:
    """Return an end of a range as text; powers of two are written as 2**n."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and value >= 2**31:
        power = value.bit_length() if value & (value + 1) == 0 else value.bit_length() - 1
        for exponent in (power, power + 1):
            if 0 <= 2**exponent - value <= 2:
                return f"2**{exponent}" + (f" - {2**exponent - value}" if 2**exponent != value else "")
    return str(value)


def hinted(hint: str) -> str:
    return f"; {hint}" if hint else ""


def bounds(low: float, high: float | None = None) -> str:
    """Return the range of a value in words that follow "must be" in a message.

    >>> bounds(0), bounds(1, 64)
    ('>= 0', 'between 1 and 64')
    """
    if high is None or high == math.inf:
        return f">= {_bound(low)}"
    if low == -math.inf:
        return f"<= {_bound(high)}"
    return f"between {_bound(low)} and {_bound(high)}"


def unfit(name: str, wanted: str, value: Any, hint: str = "") -> str:
    """Return the message for a value that must be something else.

    >>> unfit("num_queries", bounds(0), -1)
    'num_queries must be >= 0, got -1'
    """
    return f"{name} must be {wanted}, got {shown(value)}{hinted(hint)}"


# ------------------------------------------------------------------------------------------------------ one value


def optional(check: Callable[..., T], name: str, value: Any, *rest: Any, **options: Any) -> T | None:
    """Return None for None, and `check(name, value)` for any other value."""
    return None if value is None else check(name, value, *rest, **options)


def integer(name: str, value: Any, low: float = 0, high: int | None = None, hint: str = "") -> int:
    """Return a whole number from `low` to `high`, as Python's int. A bool is refused."""
    if type(value) is not int:
        try:
            if isinstance(value, bool) or _is_numpy_bool(value):  # old NumPy takes it for an index
                raise TypeError
            value = operator.index(value)
        except (TypeError, ValueError):
            raise ArgumentTypeError(unfit(name, "a whole number", value, hint), parameter=name) from None
    if value < low or (high is not None and value > high):
        raise ParameterError(unfit(name, bounds(low, high), value, hint), parameter=name)
    return value


def number(name: str, value: Any, low: float = -math.inf, high: float = math.inf, hint: str = "") -> float:
    """Return a number from `low` to `high` as a float. A bool and NaN are refused."""
    found = _real(name, value, hint)
    if not low <= found <= high:
        wanted = "a number" if (low, high) == (-math.inf, math.inf) else bounds(low, high)
        raise ParameterError(unfit(name, wanted, value, hint), parameter=name)
    return found


def fraction(name: str, value: Any, *, zero: bool = True, one: bool = True, hint: str = "0.8 is usual") -> float:
    """Return a number between 0 and 1 as a float. `zero` and `one` allow the ends."""
    found = _real(name, value, hint)
    if not 0 <= found <= 1 or (found == 0 and not zero) or (found == 1 and not one):
        wanted = bounds(0, 1) if zero and one else f"{'>=' if zero else '>'} 0 and {'<=' if one else '<'} 1"
        raise ParameterError(unfit(name, wanted, value, hint), parameter=name)
    return found


def _real(name: str, value: Any, hint: str) -> float:
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ArgumentTypeError(unfit(name, "a number", value, hint), parameter=name)
    try:
        return float(value)
    except OverflowError:
        return math.inf if operator.gt(value, 0) else -math.inf


def three(name: str, value: Any) -> tuple[Any, Any, Any]:
    """Return the three values of a tuple, a list or an array."""
    try:
        parts = () if isinstance(value, (str, bytes)) else tuple(value)
    except TypeError:
        parts = ()
    if len(parts) != 3:
        raise ArgumentTypeError(f"{name}: {shown(value)} is not three integers; give (6, 14, 2) or so", parameter=name)
    return parts


def _is_numpy_bool(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_")


def flag(name: str, value: Any) -> bool:
    """Return Python's True or False, also for NumPy's."""
    if value is True or value is False:
        return value
    if _is_numpy_bool(value):
        return bool(value)
    raise ArgumentTypeError(f"{name}: {shown(value)}; give True or False", parameter=name)


def flag_or(name: str, value: Any, word: str) -> bool | str:
    """Return True or False as `flag` does, or the given word."""
    if isinstance(value, str):
        if value == word:
            return word
        raise ParameterError(f"{name}: {shown(value)}; give True, False or {word!r}", parameter=name)
    return flag(name, value)


def function(name: str, value: Any, of: str) -> Callable[..., Any]:
    """Return a function. `of` describes its arguments in the message."""
    if callable(value):
        return value
    raise ArgumentTypeError(f"{name}: {type(value).__name__} given; pass a function of {of}", parameter=name)


def one_of(name: str, value: Any, allowed: Iterable[str | int]) -> Any:
    """Return the element of `allowed`, texts or whole numbers, that the value equals."""
    choices = tuple(allowed)
    if not isinstance(value, bool):
        for choice in choices:
            comparable = isinstance(value, str) if isinstance(choice, str) else not getattr(value, "shape", ())
            if comparable and (isinstance(choice, str) or hasattr(value, "__index__")) and value == choice:
                return choice
    kinds = tuple({type(choice) for choice in choices})
    kind = ParameterError if isinstance(value, kinds) and not isinstance(value, bool) else ArgumentTypeError
    raise kind(f"{name} {shown(value)} is not one of {', '.join(map(str, choices))}", parameter=name)


def text(name: str, value: Any, hint: str = "give a text") -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name}: {shown(value)} is not a text{hinted(hint)}", parameter=name)
    return str(value)


def path(name: str, value: Any) -> str:
    """Return a text or a Path that may name a file, as a text."""
    found = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(found, str):
        raise ArgumentTypeError(f"{name}: {shown(value)} is not a path; give a text or a Path", parameter=name)
    if not found or "\0" in found:
        raise ParameterError(
            f"{name} {shown(found)} cannot name a file{'' if found else '; it is empty'}", parameter=name
        )
    return found


def folder(name: str, value: Any) -> str:
    """Return a text or a Path that may name a folder of our own files, as a text. Arrow takes names in UTF-8 alone."""
    found = path(name, value)
    try:
        os.path.abspath(found).encode()
    except UnicodeEncodeError:
        said = os.fsencode(found).decode("utf-8", "backslashreplace")
        raise ParameterError(
            f"{name}: {said} or a folder around it has a name that is not UTF-8; name another folder", parameter=name
        ) from None
    return found


def paths(name: str, value: Any) -> list[str]:
    """Return a path, or several in a list or tuple, as a list."""
    if not isinstance(value, (list, tuple)):
        return [path(name, value)]
    if not value:
        raise ParameterError(f"{name}: none given; name at least one file", parameter=name)
    return [path(name, each) for each in value]


def columns(name: str, value: Any, *, none: bool = False) -> list[str]:
    """Return names of columns as a list, also for a single name. `none` allows an empty list."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, (list, tuple)):
        raise ArgumentTypeError(f"{name}: {shown(value)}; give the name of a column or a list of names", parameter=name)
    if not value and not none:
        raise ParameterError(f"{name}: the list is empty; name a column, or leave it out", parameter=name)
    for each in value:
        if not isinstance(each, str):
            raise ArgumentTypeError(
                f"{name}: {shown(each)} is in the list, but names of columns are strings", parameter=name
            )
    return list(value)


def listed_columns(name: str, value: Any, *, none: bool = False) -> tuple[str, ...]:
    """Return names of columns as `columns` does, where "a,b" stands for two names."""
    return tuple(each for several in columns(name, value, none=none) for each in several.split(",") if each)


def strings(name: str, value: Any) -> tuple[str, ...]:
    """Return one string or several as a tuple, which may be empty."""
    several = [value] if isinstance(value, str) else value
    if not isinstance(several, (list, tuple)) or not all(isinstance(each, str) for each in several):
        raise ArgumentTypeError(f"{name}: {shown(value)}; give a string or a list of strings", parameter=name)
    return tuple(several)


def instance(name: str, value: Any, kind: type[T] | tuple[type[T], ...], hint: str = "") -> T:
    """Return an object of one of the given classes."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(_article(each.__name__) for each in kinds)
        raise ArgumentTypeError(f"{name}: {shown(value)}; give {wanted}{hinted(hint)}", parameter=name)
    return value


def seed(value: Any) -> int:
    """Return the seed for random constants."""
    return integer("seed", value, 0, 2**64 - 1)


# ------------------------------------------------------------------------------------------------------------ arrays


def array(
    name: str, value: Any, dtype: Any, shape: tuple[int | None, ...] = (None,), *, convert: bool = False, hint: str = ""
) -> Any:
    """Return a writable, contiguous array with this dtype and shape, in this machine's byte order.

    None in `shape` allows any length. A list becomes an array if the dtype holds each of its values exactly. An array
    of another dtype is refused, because a fingerprint with other bits is another fingerprint. With `convert`, which is
    for row numbers and resemblances, it is treated like a list. A read-only array is copied, because kernels are
    compiled for writable arrays only.
    """
    wanted = _dtype(dtype)
    found, listed = as_array(name, value)
    if found.dtype != wanted and found.dtype.newbyteorder("=") != wanted:
        refused = _unfit_array(name, found, wanted, shape, hint)
        if not (listed or convert or found.dtype == object):
            raise refused
        if listed and found.dtype.kind == "f" and wanted.kind in "iu" and found.size:
            import numpy as np

            found = np.array(value, object)  # NumPy would make floats of integers if some need 64 bits
        found = _exactly(found, wanted, refused)
    if listed and found.shape == (0,) and len(shape) > 1:  # an empty list has no columns
        found = found.reshape(0, *(length or 0 for length in shape[1:]))
    fits = len(shape) == found.ndim and all(
        length is None or length == there for length, there in zip(shape, found.shape, strict=True)
    )
    if not fits:
        raise _unfit_array(name, found, wanted, shape, hint)
    if found.dtype == wanted and found.flags.c_contiguous and getattr(found.flags, "writeable", True):
        return found
    return found.astype(wanted, order="C")


def _dtype(dtype: Any) -> Any:
    import numpy as np

    try:
        found = np.dtype(dtype if isinstance(dtype, (type, str, np.dtype)) else object)
    except TypeError:
        raise ArgumentTypeError(f"dtype: {shown(dtype)}; give one such as np.uint64") from None
    if found.kind not in "biuf":
        raise ArgumentTypeError(f"dtype: {shown(dtype)} is not a type of numbers; give one such as np.uint64")
    return found


def values(name: str, value: Any) -> Any:
    """Return a one-dimensional array of any dtype. NumPy chooses the dtype for a list."""
    found, _ = as_array(name, value)
    if found.ndim != 1:
        raise ParameterError(f"{name}: of shape {_shape(found.shape)}; give one dimension", parameter=name)
    if not found.dtype.isnative:
        found = found.astype(found.dtype.newbyteorder("="))
    return found if found.flags.c_contiguous else found.copy()


def as_array(name: str, value: Any) -> tuple[Any, bool]:
    """Return the array, and whether it was a list. The array is NumPy's, or the backend's if it is on a GPU."""
    import numpy as np

    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):  # which NumPy imports when it is named
        raise ArgumentTypeError(f"{name}: a masked array; fill it or leave out the masked values", parameter=name)
    if isinstance(value, np.ndarray):
        return np.asarray(value), False
    listed = isinstance(value, (list, tuple, range))
    if not listed:
        from . import interchange

        found = interchange.array(name, value)
        if found is not None:
            return found, False
    if not listed and not hasattr(value, "__array__"):
        raise ArgumentTypeError(f"{name}: {shown(value)}; give an array or a list", parameter=name)
    try:
        return np.asarray(value), listed
    except Exception:  # whatever class converts itself may raise any exception
        raise ArgumentTypeError(f"{name}: {shown(value)} cannot be read as an array", parameter=name) from None


def _unfit_array(name: str, found: Any, wanted: Any, shape: tuple[int | None, ...], hint: str) -> ParameterError:
    needed = _shape(["rows" if length is None else length for length in shape])
    return ParameterError(
        f"{name}: {found.dtype} of shape {_shape(found.shape)}; {wanted} of shape {needed} is needed{hinted(hint)}",
        parameter=name,
    )


def _exactly(found: Any, wanted: Any, refused: ParameterError) -> Any:
    """Return numbers as another dtype. Raise `refused` unless each number keeps its value."""
    import numpy as np

    if found.size == 0:
        return found.astype(wanted)
    if wanted.kind == "f" and found.dtype.kind in "iuf":
        return found.astype(wanted)
    if wanted.kind in "iu" and found.dtype.kind in "iu":
        limits = np.iinfo(wanted)
        if int(found.min()) < limits.min or int(found.max()) > limits.max:
            raise refused
        return found.astype(wanted)
    kinds: dict[str, Any] = {"i": int, "u": int, "f": (int, float), "b": bool}
    each = found.ravel().tolist() if found.dtype == object else [None]
    if not all(isinstance(one, kinds[wanted.kind]) and (wanted.kind == "b") == isinstance(one, bool) for one in each):
        raise refused
    try:
        return np.array(each, wanted).reshape(found.shape)
    except (OverflowError, ValueError):
        raise refused from None


def texts(name: str, value: Any) -> Any:
    """Return texts as an Arrow array of strings or binary. None is a missing text."""
    import pyarrow as pa

    if not isinstance(value, (pa.Array, pa.ChunkedArray)):
        hint = "give a list of str, or an array of strings"
        speaks = any(hasattr(value, each) for each in ("__array__", "__arrow_c_array__", "__arrow_c_device_array__"))
        if isinstance(value, bytes) or not (speaks or isinstance(value, (list, tuple))):
            raise ArgumentTypeError(f"{name}: {shown(value)}; {hint}", parameter=name)
        try:
            value = pa.array(value, pa.large_string())
        except UnicodeEncodeError as error:
            raise ParameterError(
                f"{name}: {shown(error.object)} is not Unicode text; give such texts as bytes", parameter=name
            ) from None
        except MemoryError:
            raise
        except (pa.ArrowException, TypeError, ValueError) as error:
            single = getattr(value, "ndim", 1) == 0
            each_one = [value] if single or not hasattr(value, "__len__") else value
            wrong = next((each for each in each_one if not isinstance(each, (str, bytes, type(None)))), error)
            raise ArgumentTypeError(f"{name}: {shown(wrong)} is not a text; {hint}", parameter=name) from None
    kind, types = value.type, pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    readable = types.is_string, types.is_large_string, types.is_string_view
    binary = types.is_binary, types.is_large_binary, types.is_binary_view
    if not types.is_null(kind) and not any(is_kind(kind) for is_kind in (*readable, *binary)):
        raise ArgumentTypeError(f"{name}: an array of {kind}; give one of strings", parameter=name)
    return value.cast(pa.large_string()) if types.is_null(kind) else value


def numbers_between(name: str, found: Any, low: float, high: float, what: str = "") -> Any:
    """Return an array after checking that its numbers are from `low` to `high`, and not NaN."""
    if found.size:
        bad = ~((found >= low) & (found <= high))
        if bad.any():
            at = int(bad.argmax())
            first = found.ravel()[at].item()
            raise ParameterError(unfit(f"{name}[{at}]", bounds(low, high), first, what), parameter=name)
    return found
