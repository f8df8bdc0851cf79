"""Show token ids as the words of the tokenizer that made them."""

from __future__ import annotations

from typing import Any

from ..errors import InputError, ParameterError


class Vocabulary:
    """The vocabulary in a file that Hugging Face's tokenizers wrote.

    Parameters
    ----------
    path : str
        Usually a tokenizer.json.

    Raises
    ------
    ParameterError
        If tokenizers is not installed.
    InputError
        If the file cannot be read.
    """

    def __init__(self, path: str) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise ParameterError(
                "vocabulary: needs tokenizers, which is not installed; pip install 'neardup-gpu[tokenizers]'"
            ) from None
        try:
            self._tokenizer: Any = Tokenizer.from_file(path)
        except Exception as error:  # which are plain exceptions
            raise InputError(f"{path}: not a vocabulary of tokenizers ({error})") from None
        self._path = path

    def spelled(self, words: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the parts of an explanation with words in place of integers.

        Raises
        ------
        InputError
            If the vocabulary does not have an integer.
        """
        return [(op, text if op == "cut" else self._decoded(text)) for op, text in words]

    def _decoded(self, text: str) -> str:
        ids = [int(word) for word in text.split()]
        for each in ids:
            if not 0 <= each < 2**32 or self._tokenizer.id_to_token(each) is None:
                raise InputError(f"{self._path}: has no token {each}; give the vocabulary that made the ids")
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))
