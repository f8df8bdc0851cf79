"""Errors that occur while a source is read, in one line that names the source."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa

from ..errors import InputError, NeardupError, raise_want
from ..store.uris import brief, is_uri


@contextlib.contextmanager
def reading(name: str, problem: str = "cannot be read", uri: str = "") -> Iterator[None]:
    """Turn errors of Arrow and of the system while reading into one line that names the file.

    The line shows no secret of `uri`.
    """
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
        raise_want(error, path=name)
        raise InputError(f"{name}: {problem} ({brief(error, uri)}).", path=name) from (None if uri else error)
