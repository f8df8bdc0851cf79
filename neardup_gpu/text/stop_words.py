"""Lists of words, for stop words and dropped words: short lists by language, your own lists, and their fingerprints.

Spots are at stop words. Dropped words are left out before shingles are made. A recipe holds what is needed to use the
same words again: the name of a list with a hash of its words, so that lists of another version are refused, and all
words of your own list.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from .. import checks
from ..errors import ArgumentTypeError, InputError, ParameterError

if TYPE_CHECKING:
    import numpy as np

USUAL = "en"
"""The list that is taken where none is named."""

OWN = "own"
"""The name in a recipe of a list that is not built in."""

MOST_BYTES = 1 << 20
"""Most bytes of a file of stop words, and of all words of a list together, as each recipe holds them."""


@cache
def languages() -> dict[str, tuple[str, ...]]:
    """The lists of this package.

    Returns
    -------
    dict of str to tuple of str
        The words, in order, by ISO 639's code of their language.

    Examples
    --------
    >>> "the" in languages()["en"], "der" in languages()["de"]
    (True, True)
    """
    text = files(__package__).joinpath("stop_words.txt").read_text("utf-8")
    lines = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {language: _in_order(words.split()) for language, _, words in lines}


def chosen(value: Any, name: str = "stop_words") -> str | tuple[str, ...]:
    """Return the list that an argument chooses: the code of a language, or the words of your own list or file.

    Parameters
    ----------
    value : str, path or list of str
        A language's code, a file of words in UTF-8, divided by white space, lines after "#" left out, or the words.
    name : str, default "stop_words"
        The argument's name, for messages.

    Returns
    -------
    str or tuple of str

    Raises
    ------
    InputError
        If the file cannot be read, or holds no words.
    ParameterError, ArgumentTypeError
        If the value is not a list, a file or a language.

    Examples
    --------
    >>> chosen("en"), chosen(["The", "a", "the"])
    ('en', ('a', 'the'))
    """
    if isinstance(value, str) and value in languages():
        return value
    if isinstance(value, (str, os.PathLike)):
        return _read(checks.path(name, value), name)
    if isinstance(value, bytes) or not isinstance(value, (list, tuple, set, frozenset)):
        raise ArgumentTypeError(f"{name}: {checks.shown(value)}; give {_ways()}")
    words = [checks.text(name, word, f"give {_ways()}") for word in value]
    for word in words:
        if not _is_unicode(word):
            raise ParameterError(f"{name}: {checks.shown(word)} is not Unicode text; give {_ways()}")
    if not words or not all(_is_word(word) for word in words):
        wrong = next((word for word in words if not _is_word(word)), "")
        raise ParameterError(f"{name}: {checks.shown(wrong)} is not a word; give {_ways()}")
    if sum(len(word.encode()) + 1 for word in words) > MOST_BYTES:
        raise ParameterError(f"{name}: more than {MOST_BYTES:,} bytes of words; give fewer")
    return _in_order(words)


def _read(path: str, name: str) -> tuple[str, ...]:
    """Return the words of a file."""
    try:
        with open(path, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8; words are read from a text in UTF-8") from None
    except UnicodeEncodeError:
        raise InputError(f"{name}: {checks.shown(path)} cannot name a file, nor a list; give {_ways()}") from None
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        why = f"no such file, nor a list of words; give {_ways()}" if missing else error.strerror or str(error)
        raise InputError(f"{path}: {why}") from None
    if len(raw) > MOST_BYTES:
        raise InputError(f"{path}: larger than {MOST_BYTES:,} bytes; a list of words is short")
    words = [word for line in text.splitlines() if not line.startswith("#") for word in line.split() if _is_word(word)]
    if not words:
        raise InputError(f"{path}: holds no words")
    return _in_order(words)


def _ways() -> str:
    return f"{', '.join(languages())}, or a file or list of words"


def _is_word(word: str) -> bool:
    """Whether a text has a letter or number and no white space, so that it has tokens and can stand in a list."""
    return len(word.split()) == 1 and any(character.isalnum() or character == "_" for character in word)


def _is_unicode(word: str) -> bool:
    """Whether a text has no halves of characters, surrogates, which UTF-8 does not have."""
    return not any("\ud800" <= character <= "\udfff" for character in word)


def _in_order(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({word.strip().casefold() for word in words}))


def words_of(listed: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of the list that `chosen` returned."""
    return languages()[listed] if isinstance(listed, str) else listed


SETTINGS = {"stop_words": "stop_word_list", "drop_words": "drop_word_list"}
"""Names of the lists in a recipe, and of the words in your own list."""


def described(listed: str | tuple[str, ...], name: str = "stop_words") -> dict[str, str]:
    """Return what a recipe holds of a list, as plain texts.

    Returns
    -------
    dict
        Under `name`, the list's name and a hash of its words. Under its name in `SETTINGS`, the words of your own list.

    Examples
    --------
    >>> described(("a", "the"))
    {'stop_words': 'own:e07f9903f0f0', 'stop_word_list': 'a the'}
    """
    words = " ".join(words_of(listed))
    digest = hashlib.sha256(words.encode()).hexdigest()[:12]
    if isinstance(listed, str):
        return {name: f"{listed}:{digest}"}
    return {name: f"{OWN}:{digest}", SETTINGS[name]: words}


def restored(settings: dict[str, Any], name: str = "stop_words") -> str | tuple[str, ...] | None:
    """Take what `described` returned out of settings, and return the list; None if the settings hold no list.

    Raises
    ------
    ValueError
        If this version has no such list.
    """
    described, words = settings.pop(name, None), settings.pop(SETTINGS[name], None)
    if described is None:
        return None
    language = str(described).partition(":")[0]
    if language != OWN and language in languages() and words is None:
        return language
    if language != OWN or not isinstance(words, str):
        raise ValueError
    return tuple(words.split(" "))


@cache
def fingerprints(listed: str | tuple[str, ...], poly: int, folds: tuple[str, ...] | None = None) -> np.ndarray:
    """Return the fingerprints of listed words as the tokenizer makes them.

    A word in which the tokenizer finds several tokens, as in "don't", counts as each of them.

    Returns
    -------
    array of uint64
        Ascending, each once.
    """
    import numpy as np

    from ..kernels import fold, tokens

    text = np.frombuffer(" ".join(words_of(listed)).encode(), np.uint8)
    offsets = np.array([0, len(text)], np.int64)
    if folds:
        text, offsets = fold.cpu(text, offsets, folds)
    return np.unique(tokens.cpu(text, offsets, np.uint64(poly))[0])
