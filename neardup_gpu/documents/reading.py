"""Errors that occur while a source is read, in one line that names the source."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pyarrow as pa

from ..arrow_versions import explained
from ..errors import InputError, NeardupError, ResourceError, want
from .uris import is_uri, masked_text

_ADVICE = re.compile(r", consider increasing [\w ]+ \(current limit is (\d+)\)")
"""Advice of Arrow that its users cannot follow, as no setting of Python changes this limit."""


def brief(error: BaseException | str) -> str:
    """An error in one line of at most 200 characters, without the secrets of URIs."""
    text = " ".join(masked_text(explained(error)).split())
    text = _ADVICE.sub(r"; the limit is \1, so write the columns that you need to another file", text)
    return text if len(text) <= 200 else f"{text[:200]}..."


@contextlib.contextmanager
def reading(name: str, problem: str = "cannot be read") -> Iterator[None]:
    """Turn errors of Arrow and of the system while reading into one line that names the file."""
    # A file system of fsspec may raise any exception.
    expected = (Exception,) if is_uri(name) else (OSError, MemoryError, pa.ArrowException, UnicodeDecodeError)
    try:
        yield
    except StopIteration:  # the end of an Arrow stream
        raise
    except NeardupError as error:
        error.path = error.path or name
        raise
    except FileNotFoundError:
        raise InputError(f"{name}: no such file or folder.", path=name) from None
    except expected as error:
        if wanting := want(error):
            raise ResourceError(wanting, path=name) from error
        raise InputError(f"{name}: {problem} ({brief(error)}).", path=name) from error
