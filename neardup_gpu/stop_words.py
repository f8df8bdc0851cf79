"""Stop words, at which spots are: short lists by language, lists of one's own, and their fingerprints.

A recipe holds what is needed to make the same spots again: the name of a list with a hash of its words, so that lists
of another version are refused, and all words of a list of one's own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from . import checks
from .errors import ArgumentTypeError, InputError, ParameterError

if TYPE_CHECKING:
    import numpy as np

USUAL = "en"
"""The list that is taken where none is named."""

OWN = "own"
"""How a recipe calls a list that is none of these."""

MOST_BYTES = 1 << 20
"""Of a file of stop words, and of all words of a list together, as each recipe holds them."""


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


def chosen(value: Any) -> str | tuple[str, ...]:
    """The list that an argument names: a language as it is, or the words of a list or file of one's own.

    Parameters
    ----------
    value : str, path or list of str
        A language's code, a file of words in UTF-8, divided by white space, lines after "#" left out, or the words.

    Returns
    -------
    str or tuple of str

    Raises
    ------
    InputError
        If the file cannot be read, or holds no words.
    ParameterError, ArgumentTypeError
        If it is none of these.

    Examples
    --------
    >>> chosen("en"), chosen(["The", "a", "the"])
    ('en', ('a', 'the'))
    """
    if isinstance(value, str) and value in languages():
        return value
    if isinstance(value, (str, os.PathLike)):
        return _read(checks.path("stop_words", value))
    if isinstance(value, bytes) or not isinstance(value, (list, tuple, set, frozenset)):
        raise ArgumentTypeError(f"stop_words: {checks.shown(value)}; give {_ways()}")
    words = [checks.text("stop_words", word, f"give {_ways()}") for word in value]
    for word in words:
        if not _is_unicode(word):
            raise ParameterError(f"stop_words: {checks.shown(word)} is not Unicode text; give {_ways()}")
    if not words or not all(_is_word(word) for word in words):
        wrong = next((word for word in words if not _is_word(word)), "")
        raise ParameterError(f"stop_words: {checks.shown(wrong)} is no word; give {_ways()}")
    if sum(len(word.encode()) + 1 for word in words) > MOST_BYTES:
        raise ParameterError(f"stop_words: more than {MOST_BYTES:,} bytes of words; give fewer")
    return _in_order(words)


def _read(path: str) -> tuple[str, ...]:
    """The words of a file."""
    try:
        with open(path, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8; stop words are read from a text in UTF-8") from None
    except UnicodeEncodeError:
        raise InputError(f"stop_words: {checks.shown(path)} cannot name a file, nor a list; give {_ways()}") from None
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        why = f"no such file, nor a list of stop words; give {_ways()}" if missing else error.strerror or str(error)
        raise InputError(f"{path}: {why}") from None
    if len(raw) > MOST_BYTES:
        raise InputError(f"{path}: larger than {MOST_BYTES:,} bytes; a list of stop words is short")
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


def words_of(stop_words: str | tuple[str, ...]) -> tuple[str, ...]:
    """The words of what `chosen` chose."""
    return languages()[stop_words] if isinstance(stop_words, str) else stop_words


def described(stop_words: str | tuple[str, ...]) -> dict[str, str]:
    """What a recipe holds of a list, as plain texts.

    Returns
    -------
    dict
        stop_words, the list's name and a hash of its words; stop_word_list, the words, if they are one's own.

    Examples
    --------
    >>> described(("a", "the"))
    {'stop_words': 'own:e07f9903f0f0', 'stop_word_list': 'a the'}
    """
    words = " ".join(words_of(stop_words))
    digest = hashlib.sha256(words.encode()).hexdigest()[:12]
    if isinstance(stop_words, str):
        return {"stop_words": f"{stop_words}:{digest}"}
    return {"stop_words": f"{OWN}:{digest}", "stop_word_list": words}


def restored(settings: dict[str, Any]) -> str | tuple[str, ...] | None:
    """Take what `described` made out of settings; None if they hold none.

    Raises
    ------
    ValueError
        If there is no such list here.
    """
    name, words = settings.pop("stop_words", None), settings.pop("stop_word_list", None)
    if name is None:
        return None
    language = str(name).partition(":")[0]
    if language != OWN and language in languages() and words is None:
        return language
    if language != OWN or not isinstance(words, str):
        raise ValueError
    return tuple(words.split(" "))


@cache
def fingerprints(stop_words: str | tuple[str, ...], poly: int) -> np.ndarray:
    """Fingerprints of stop words as the tokenizer makes them.

    A word in which the tokenizer finds several tokens, as in "don't", counts as each of them.

    Returns
    -------
    array of uint64
        Ascending, each once.
    """
    import numpy as np

    from neardup_gpu.kernels import tokens

    text = np.frombuffer(" ".join(words_of(stop_words)).encode(), np.uint8)
    return np.unique(tokens.cpu(text, np.array([0, len(text)], np.int64), np.uint64(poly))[0])
