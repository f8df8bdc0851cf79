"""Errors that occur while a source is read, in one line that names the source."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa

from ..errors import InputError, NeardupError, ResourceError, want
from .uris import is_uri, masked_text


def brief(error: BaseException | str) -> str:
    """An error in one line of at most 200 characters, without the secrets of URIs."""
    text = " ".join(masked_text(str(error)).split())
    return text if len(text) <= 200 else f"{text[:200]}..."


@contextlib.contextmanager
def reading(name: str, problem: str = "cannot be read") -> Iterator[None]:
    """Turn errors of Arrow and of the system while reading into one line that names the file."""
    # A file system of fsspec may raise any exception.
    expected = (Exception,) if is_uri(name) else (OSError, MemoryError, pa.ArrowException, UnicodeDecodeError)
    try:
        yield
    except (NeardupError, StopIteration):  # the latter is the end of an Arrow stream
        raise
    except FileNotFoundError:
        raise InputError(f"{name}: no such file or folder.") from None
    except expected as error:
        if wanting := want(error):
            raise ResourceError(wanting) from error
        raise InputError(f"{name}: {problem} ({brief(error)}).") from error
