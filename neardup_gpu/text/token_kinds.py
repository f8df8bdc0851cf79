"""Kinds of tokens: what shingles are made of. A new kind is a kernel and a line in `KINDS`.

A kernel of tokens takes the bytes of documents and returns fingerprints, with the place of each in the bytes; see
`kernels/tokens.py`. All later stages take tokens of any kind.
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
import sys
from collections.abc import Callable, Container
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from .. import checks
from ..definitions import polynomial
from ..errors import ArgumentTypeError, InputError, ParameterError, RecipeMismatchError
from ..records import dataclass
from .raw_text import count_invalid, to_readable, to_string

if TYPE_CHECKING:
    import numpy as np

    from ..data import Ragged
    from ..recipe import Recipe


@dataclass(frozen=True)
class TokenKind:
    """A kind of token that a kernel makes.

    Parameters
    ----------
    kernel : str
        The kernel's name.
    noun : str
        What messages call a token.
    size : int, default 5
        Tokens of a shingle unless another number is given.
    least : int, default 1
        Tokens of a shingle below which different documents share shingles by chance, so that there is a warning.
    density : int, default 1
        Tokens per byte, at most, relative to words.
    per_word : float, default 1
        The number of tokens that are about as much text as a word.
    holds : "text", "integers" or "bytes", default "text"
        What documents are: texts, lists of integers, or the bytes of files as they are.
    folds : tuple of str, default ()
        Names of the folds that texts may have before they are divided; see `kernels/fold.py`.
    needed : callable
        Returns what the kernel takes besides the text and the modulus of tokens, for a recipe, the names of documents
        (None if they are not known) and their number.
    """

    kernel: str
    noun: str
    size: int = 5
    least: int = 1
    density: int = 1
    per_word: float = 1
    holds: str = "text"
    folds: tuple[str, ...] = ()
    needed: Callable[[Recipe, Any, int], tuple[Any, ...]] = lambda recipe, names, count: ()

    @property
    def of_integers(self) -> bool:
        """Whether documents are lists of integers."""
        return self.holds == "integers"

    @property
    def place(self) -> str:
        """Return what places in documents count."""
        return "integer" if self.of_integers else "byte"

    def as_much_as(self, words: int) -> int:
        """Return the number of tokens that are about as much text as some words, at least 2.

        >>> KINDS["letters"].as_much_as(50), KINDS["lines"].as_much_as(8)
        (250, 2)
        """
        return max(2, round(words * self.per_word))

    def begin(self, text: Ragged) -> Any:
        """Start `run` on a device and wait for nothing, if the kernel can; it goes on from there while this is held."""
        count = getattr(import_module(f"neardup_gpu.kernels.{self.kernel}"), "count_ahead", None)
        return None if count is None else count(text.values, text.offsets)

    def run(self, text: Ragged, recipe: Recipe, backend: str | None, names: Any, places: bool) -> tuple[Any, ...]:
        """Return what the kernel returns for some documents."""
        from ..engine.choice import kernel

        module = import_module(f"neardup_gpu.kernels.{self.kernel}")
        needed = self.needed(recipe, names, len(text))
        return kernel(module, backend)(text.values, text.offsets, recipe.material.tokens, *needed, places)


def _of_lines(recipe: Recipe, names: Any, count: int) -> tuple[Any, ...]:
    return (polynomial(recipe.seed, "lines"),)


def _of_code(recipe: Recipe, names: Any, count: int) -> tuple[Any, ...]:
    from .comments import numbers_of, table

    named = names.to_pylist() if hasattr(names, "to_pylist") else names
    return numbers_of(named, recipe.shingles.language, count), *table(recipe.unit.divides)


def open_code(text: Ragged, recipe: Recipe, names: Any) -> np.ndarray:
    """Return for each byte of code whether a comment or a string goes on there; see `comments.are_open`."""
    from .comments import are_open, numbers_of

    return are_open(text, numbers_of(names.to_pylist(), recipe.shingles.language, len(text)))


def _of_chunks(recipe: Recipe, names: Any, count: int) -> tuple[Any, ...]:
    return RUN, WINDOW


RUN, WINDOW = 32, 256
"""The number of bytes that are hashed at each place of a file, and the number of places from which a cut is chosen; see
`kernels/chunks.py`."""

FOLDS = ("marks", "hyphens", "digits")
"""The names of all folds; see `kernels/fold.py`."""

KINDS = {
    "words": TokenKind("tokens", "word", folds=FOLDS),
    "letters": TokenKind("letters", "letter", size=24, least=12, density=2, per_word=5, folds=FOLDS),
    "lines": TokenKind("lines", "line", size=1, per_word=0.1, folds=("marks", "digits"), needed=_of_lines),
    "code": TokenKind("code", "token", density=2, needed=_of_code),
    "ids": TokenKind("ids", "integer", holds="integers"),
    "chunks": TokenKind("chunks", "chunk", size=1, per_word=0.04, holds="bytes", needed=_of_chunks),
}
"""The kinds of tokens by name; the first is the default."""

TokensName = Literal["words", "letters", "lines", "code", "ids", "chunks"]
"""The names in `KINDS`."""


def noun_of(tokens: str) -> str:
    """Return what reports about passages call a token of a kind."""
    return "token" if tokens == "words" else KINDS[tokens].noun


def lengths(words: int, *, but: Container[str] = ()) -> str:
    """Return what a help text says about a default length, which is one of words.

    >>> lengths(20)
    '20; 100 letters, 2 lines, 2 chunks'
    """
    named = {name: kind for name, kind in KINDS.items() if kind.per_word != 1 and name not in but}
    others = [f"{kind.as_much_as(words)} {name}" for name, kind in named.items()]
    return f"{words}; {', '.join(others)}"


@dataclass(frozen=True)
class OwnTokens:
    """A tokenizer of the user: a function that takes a list of str and returns, for each, a list of str or of int.

    Parameters
    ----------
    name : str
        The module and the qualified name of the function, with a colon in between.
    digest : str
        A hash of the function's source.
    function : callable or None
        None if a recipe was read again and the function is not loaded here.
    """

    name: str
    digest: str
    function: Callable[[list[str]], Any] | None = field(default=None, compare=False, repr=False)

    noun = "token"
    size, least, density, holds, of_integers, place = 5, 1, 2, "text", False, "byte"
    folds = ()

    @classmethod
    def of(cls, function: Callable[[list[str]], Any]) -> OwnTokens:
        """Name a function, and hash its source."""
        named = function if hasattr(function, "__qualname__") else type(function)
        module = getattr(function, "__module__", None) or getattr(named, "__module__", "builtins")
        name = f"{module}:{named.__qualname__}"
        return cls(name, _digest(function, named), function)

    @classmethod
    def described(cls, text: str) -> OwnTokens:
        """Return the tokenizer that `str` described. Its function is there if this program has loaded it already.

        Nothing is imported, as a file could name any function.
        """
        name, _, digest = text.rpartition(":")
        module, _, qualified = name.partition(":")
        found: Any = sys.modules.get(module)
        for part in qualified.split("."):
            found = getattr(found, part, None)
        if callable(found) and (here := cls.of(found)) == cls(name, digest):
            return here
        return cls(name, digest)

    def __str__(self) -> str:
        return f"{self.name}:{self.digest}"

    def begin(self, text: Ragged) -> None:
        """The function is called when its tokens are needed."""

    def check_picklable(self) -> None:
        """Raise ParameterError if other processes cannot be given the function."""
        try:
            pickle.dumps(self.function)
        except Exception as error:
            why = str(error).partition("\n")[0]
            raise ParameterError(
                f"tokens: {self.name} cannot be pickled for tasks ({why}); define it in a module"
            ) from None

    def run(self, text: Ragged, recipe: Recipe, backend: str | None, names: Any, places: bool) -> tuple[Any, ...]:
        """Return fingerprints, offsets and the number of invalid bytes, as a kernel of tokens does, without places.

        A string's fingerprint is that of `kernels/texts.py`, and an integer's that of `kernels/ids.py`.
        """
        import numpy as np

        from ..engine.choice import kernel, to_host
        from ..kernels import ids, texts
        from ..kernels._launch import know, on_device

        assert not places
        if self.function is None:
            raise RecipeMismatchError(
                f"tokens: made by {self.name}, which is not loaded here, or has changed since; give the recipe with it"
            )
        on_host = to_host(text)
        strings = [to_string(on_host[row].tobytes()) for row in range(len(text))]
        rows = self._rows([to_readable(string) for string in strings], names)
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        tokens = [token for row in rows for token in row]
        q = recipe.material.tokens
        if all(isinstance(token, str) for token in tokens):
            spelled = [token.encode("utf-8", "surrogatepass") for token in tokens]
            ends = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(each) for each in spelled], dtype=np.int64)])
            values = kernel(texts, backend)(np.frombuffer(b"".join(spelled), np.uint8), ends, q)
        else:
            try:
                numbers = np.array([checks.integer("token", token, -(2**63), 2**63 - 1) for token in tokens], np.int64)
            except (ArgumentTypeError, ParameterError):
                raise self._error(names, "gives tokens that are neither all strings nor all 64-bit integers") from None
            values = kernel(ids, backend)(numbers.view(np.uint8), 8 * np.array([0, len(tokens)]), q)[0]
        if not isinstance(values, np.ndarray):
            on_host_offsets, offsets = offsets, on_device(offsets)
            know(offsets, on_host_offsets)
        return values, offsets, sum(map(count_invalid, strings))

    def _rows(self, strings: list[str], names: Any) -> list[Any]:
        """Call the function, and check the number of its results."""
        assert self.function is not None
        try:
            rows = [row if isinstance(row, str) else list(row) for row in self.function(strings)] if strings else []
        except MemoryError:
            raise
        except Exception as error:
            raise self._error(names, f"raised {type(error).__name__}: {error}") from error
        if len(rows) != len(strings):
            raise self._error(names, f"returned {len(rows):,} lists for {len(strings):,} texts")
        if any(isinstance(row, str) for row in rows):
            raise self._error(names, "returned a string in place of a list of tokens")
        return rows

    def _error(self, names: Any, what: str) -> InputError:
        where = ""
        if names is not None and len(names):
            where = f" in the batch that begins with document {getattr(names[0], 'as_py', lambda: names[0])()!r}"
        return InputError(f"tokens: {self.name} {what}{where}")


def _digest(function: Any, named: Any) -> str:
    """Hash the source of a function, or of an object's class; what is pickled, if there is no source."""
    try:
        source = inspect.getsource(getattr(named, "__wrapped__", named)).encode()
    except (OSError, TypeError):
        try:
            source = pickle.dumps(function)
        except Exception:
            source = getattr(getattr(function, "__code__", None), "co_code", b"")
    return hashlib.sha256(source).hexdigest()[:12]


def chosen(tokens: Any) -> str | OwnTokens:
    """Return the kind that an argument names: a name in `KINDS`, or the user's function."""
    if isinstance(tokens, OwnTokens):
        return tokens
    if callable(tokens):
        return OwnTokens.of(tokens)
    return str(checks.one_of("tokens", tokens, KINDS))


def restored(tokens: Any) -> str | OwnTokens:
    """Return the kind that a recipe holds as text."""
    return OwnTokens.described(tokens) if isinstance(tokens, str) and ":" in tokens else chosen(tokens)


def chosen_folds(fold: Any, tokens: str | OwnTokens) -> tuple[str, ...]:
    """Return the folds that an argument names, in the order of `FOLDS`, if this kind of token may have them."""
    names = fold.split(",") if isinstance(fold, str) else fold
    if not isinstance(names, (list, tuple)) or not names:
        raise ArgumentTypeError(f"fold: {checks.shown(fold)}; give some of {', '.join(FOLDS)}", parameter="fold")
    named = [checks.one_of("fold", name, FOLDS) for name in names]
    possible = (tokens if isinstance(tokens, OwnTokens) else KINDS[tokens]).folds
    for name in named:
        if name not in possible:
            have = f"they have {' and '.join(possible)}" if possible else "they have none"
            raise ParameterError(f"fold {name!r} and tokens {str(tokens)!r}: {have}; leave it out", parameter="fold")
    return tuple(name for name in FOLDS if name in named)
