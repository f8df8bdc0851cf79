"""Stems of words, for features of simhash: Snowball's algorithms, as PyStemmer has them."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..errors import ParameterError, RecipeMismatchError
from ..kernels import tokens as words_kernel
from ..kernels._gf2 import rabin
from ..kernels._launch import array_module, on_device, to_host
from ..kernels.tokens import canonical_words

if TYPE_CHECKING:
    from ..data import Ragged

ALGORITHMS = {
    "ar": "arabic",
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
"""The names of Snowball's algorithms by the codes of languages."""


def chosen(value: Any) -> str:
    """Return the language and the version of PyStemmer that an argument chooses, with a colon in between.

    Parameters
    ----------
    value : str
        The code of a language, or what this function returned.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If there is no such language, or PyStemmer is not installed.
    """
    language, _, version = value.partition(":") if isinstance(value, str) else (value, "", "")
    checks.one_of("stem", language, ALGORITHMS)
    return f"{language}:{version or _installed().version()}"


def _installed() -> Any:
    try:
        import Stemmer
    except ImportError:
        raise ParameterError(
            "stem: needs PyStemmer, which is not installed; pip install 'neardup-gpu[stem]'", parameter="stem"
        ) from None
    return Stemmer


def stems_of(tokens: Any, text: Ragged, begins: Any, ends: Any, stem: str, poly: np.uint64) -> Any:
    """Return the fingerprints of the stems of words, which are those of the stems as words.

    Each distinct word is stemmed once. A word with a byte that is not UTF-8 is its own stem.

    Parameters
    ----------
    tokens : array of uint64
        Fingerprints of words.
    text : Ragged of uint8
    begins, ends : arrays of int64
        Places of the words in the values of `text`.
    stem : str
        What `chosen` returned.
    poly : uint64
        The modulus of tokens.

    Raises
    ------
    RecipeMismatchError
        If another version of PyStemmer is installed.
    ParameterError
        If PyStemmer is not installed.
    """
    language, _, version = stem.partition(":")
    installed = _installed()
    if installed.version() != version:
        raise RecipeMismatchError(
            f"stem: made with PyStemmer {version}, but {installed.version()} is installed; make it again, or install "
            f"PyStemmer=={version}"
        )
    distinct, firsts, numbers = np.unique(to_host(tokens), return_index=True, return_inverse=True)
    raw, first, last = to_host(text.values), to_host(begins)[firsts], to_host(ends)[firsts]
    words = [
        _spelled(raw[begin:end].tobytes(), int(token), int(poly))
        for token, begin, end in zip(distinct.tolist(), first.tolist(), last.tolist(), strict=True)
    ]
    stems = [stem.encode() for stem in installed.Stemmer(ALGORITHMS[language]).stemWords(words)]
    ends_of_stems = np.cumsum([0, *map(len, stems)], dtype=np.int64)
    values, offsets, _ = words_kernel.cpu(np.frombuffer(b"".join(stems), np.uint8), ends_of_stems, poly)
    are_words = np.diff(offsets) == 1
    distinct[are_words] = values[offsets[:-1][are_words]]
    found = distinct[numbers.reshape(-1)]
    return found if array_module(tokens) is np else on_device(found)


def _spelled(raw: bytes, token: int, poly: int) -> str:
    """Return the word of a fingerprint at its place, composed as stemmers expect it; "" if it has no UTF-8."""
    if raw.isascii():
        return raw.decode().lower()
    for word in canonical_words(raw)[0]:
        spelling = b"".join(part for part, *_ in word)
        if rabin(spelling, poly) == token:
            break
    try:
        return unicodedata.normalize("NFC", spelling.decode())
    except UnicodeDecodeError:
        return ""
