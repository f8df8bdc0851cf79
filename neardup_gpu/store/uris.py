"""URIs: the file system that a URI names, and the URI without its secrets."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from pyarrow import fs

from ..arrow_versions import explained
from ..errors import InputError, OutputError

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]+://"
_URI = re.compile(rf"(?:[A-Za-z][A-Za-z0-9+.-]*::)*{_SCHEME}")
_CHAINED = re.compile(rf"::(?=(?:[A-Za-z][A-Za-z0-9+.-]*::)*{_SCHEME})")
_INSIDE_TEXT = re.compile(rf"{_SCHEME}[^\s'\"<>`]+")
_HARMLESS = {  # names of query parameters whose values are no secret
    *("region", "scheme", "endpoint_override", "allow_bucket_creation", "allow_bucket_deletion"),
    *("check_directory_existence_before_creation", "allow_delayed_open", "background_writes"),
    "force_virtual_addressing",
    *("tls_ca_file_path", "tls_ca_dir_path", "tls_verify_certificates", "connect_timeout", "request_timeout"),
    *("retry_limit_seconds", "default_metadata", "blob_storage_authority", "dfs_storage_authority", "enable_tls"),
    *("blob_storage_scheme", "dfs_storage_scheme", "replication", "buffer_size", "default_block_size", "versionid"),
    *("use_mmap", "project_id"),
}
_WITHOUT_PORT = ("s3", "gs", "gc", "abfs", "wasb", "az", "oss", "hf")  # what follows these is a bucket, never host:port
_NO_SECRET_USER = ("abfs", "abfss", "wasb", "wasbs", "hdfs", "viewfs")  # the part before @ is a container or a user
_GOOGLE_SECONDS = 60
_EXTRAS = {"hf": "hf", "http": "http", "https": "http", "az": "azure"}
"""Extras of this package for file systems that Arrow does not have."""

_ADVICE = re.compile(r", consider increasing [\w ]+ \(current limit is (\d+)\)")
"""Advice of Arrow that its users cannot follow, as no setting of Python changes this limit."""

_NUMBER = re.compile(r"(Error writing bytes to file\. Detail: )?\[[Ee]rrno \d+\] ")
"""The number of an error of the system, whose words follow, and what Arrow says before them."""


def is_uri(source: str) -> bool:
    """Return whether the source begins like ``s3://``, possibly after a prefix such as ``zip::``."""
    return _URI.match(source) is not None


def refuse_uri(path: str, why: str) -> None:
    """Raise OutputError if a path is a URI; `why` ends the sentence and says what to name instead."""
    if is_uri(path):
        raise OutputError(f"{masked(path)}: is a URI, and {why}")


def masked(source: str) -> str:
    """The source as it may be shown and stored: in a URI, ``***`` in place of user names, passwords and the values of
    all query parameters that are not known to be harmless. Paths are returned as they are."""
    return "::".join(map(_masked, _CHAINED.split(source))) if is_uri(source) else source


def is_masked(source: str) -> bool:
    """Whether `masked` replaced something in this source."""
    return is_uri(source) and re.search(r"://\*\*\*@|[?&;](?:[^=&;]*=)?\*\*\*", source) is not None


def masked_text(text: str, uri: str = "") -> str:
    """A message with every URI in it masked, and the secrets of `uri` wherever they stand."""
    if is_uri(uri):
        text = text.replace(uri, masked(uri))
        for secret in sorted(_secrets(uri), key=len, reverse=True):
            text = text.replace(secret, "***")
    return _INSIDE_TEXT.sub(lambda found: masked(found[0]), text)


def brief(error: BaseException | str, uri: str = "") -> str:
    """An error in one line of at most 200 characters, without the secrets of URIs, and of `uri` wherever they stand."""
    text = _NUMBER.sub("", " ".join(masked_text(explained(error), uri).split()))
    text = _ADVICE.sub(r"; the limit is \1, so write the columns that you need to another file", text)
    return text if len(text) <= 200 else f"{text[:200]}..."


def split_query(uri: str) -> tuple[str, str]:
    """The URI up to its query, and the query with its question mark."""
    path, mark, query = uri.partition("?")
    return path, mark + query


def file_system(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system that a URI names, and the path within it: Arrow's own, or one of fsspec where Arrow has none.

    Raises
    ------
    InputError
        If there is none; the message says what to install, where that may help. No message holds a secret.
    """
    shown = masked(uri)
    try:
        return fs.FileSystem.from_uri(impatient(uri))
    except ImportError:
        pass
    except Exception as error:  # hf:// may raise any exception
        if "Unrecognized filesystem type" not in str(error):
            raise InputError(f"{shown}: cannot be opened ({brief(error, uri)}).") from None
    scheme = _CHAINED.split(uri)[-1].partition("://")[0].rpartition("::")[2].removeprefix("fsspec+")
    try:
        import fsspec
    except ImportError:
        package = f"'neardup-gpu[{_EXTRAS[scheme]}]'" if scheme in _EXTRAS else "fsspec"
        raise InputError(f"{shown}: {scheme}:// is read through fsspec; install it: pip install {package}") from None
    try:
        found, path = fsspec.url_to_fs(uri.removeprefix("fsspec+"))
    except ImportError as error:
        needed = _package(scheme)
        install = f"; pip install {needed}" if needed else ""
        raise InputError(f"{shown}: {scheme}:// needs another package ({brief(error, uri)}){install}") from None
    except ValueError as error:
        if "Protocol not known" not in str(error):
            raise InputError(f"{shown}: cannot be opened ({brief(error, uri)}).") from None
        raise InputError(
            f"{shown}: {scheme}:// names no file system that pyarrow or fsspec knows; common ones are s3, gs, abfs, "
            "az, hf, https and file."
        ) from None
    except Exception as error:  # every file system of fsspec may raise any exception
        raise InputError(f"{shown}: cannot be opened ({brief(error, uri)}).") from None
    if type(found).__name__ == "LocalFileSystem":
        return fs.LocalFileSystem(), path
    return fs.PyFileSystem(fs.FSSpecHandler(found)), path


def impatient(uri: str) -> str:
    """The URI with a limit to how long Google's client tries again what fails. Its own is 15 minutes, also where
    there are no credentials, and nothing can interrupt it."""
    if not re.match(r"(?i)(?:gs|gcs)://", uri) or "retry_limit_seconds=" in split_query(uri)[1]:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}retry_limit_seconds={_GOOGLE_SECONDS}"


def of_fsspec(system: Any) -> Any:
    """Return the file system of fsspec that one of Arrow stands for; None for Arrow's own."""
    handler = getattr(system, "handler", None)
    return handler.fs if isinstance(handler, fs.FSSpecHandler) else None


def is_folder(system: fs.FileSystem, path: str) -> bool:
    """Whether a store that says a path is a file can list it all the same, as HTTP does with a page of links."""
    store = of_fsspec(system)
    return store is not None and bool(store.isdir(path))


def why_not_found(system: fs.FileSystem, path: str, uri: str) -> str | None:
    """Return why a file was not found, other than that it is missing; None if nothing is known.

    HTTP reports every failure as a missing file.
    """
    store = of_fsspec(system)
    if store is None:
        return None
    try:
        store.info(path)
    except FileNotFoundError as error:
        cause = error.__cause__
        if cause is None or isinstance(cause, FileNotFoundError) or getattr(cause, "status", None) == 404:
            return None
        return brief(cause, uri)
    except Exception as error:  # every file system of fsspec may raise any exception
        return brief(error, uri)
    return None


def _package(scheme: str) -> str | None:
    """Return what pip has to install for a scheme that fsspec knows; None if fsspec's own message is enough."""
    from importlib.metadata import metadata

    from fsspec.registry import known_implementations

    if scheme in _EXTRAS:
        return f"'neardup-gpu[{_EXTRAS[scheme]}]'"
    if scheme in (metadata("fsspec").get_all("Provides-Extra") or []):
        return f"'fsspec[{scheme}]'"
    module = known_implementations.get(scheme, {"class": "fsspec"})["class"].partition(".")[0]
    return None if module == "fsspec" else module.replace("_", "-")


def _masked(uri: str) -> str:
    scheme, user, path, parameters = _parts(uri)
    if user:
        user = f"{user}@" if _is_public(scheme, user) else "***@"
    return f"{scheme}{user}{path}{''.join(mark + _masked_parameter(text) for mark, text in parameters)}"


def _masked_parameter(text: str) -> str:
    name, equals, value = text.partition("=")
    if not text or (name.lower() in _HARMLESS and "@" not in unquote(value)):
        return text
    return f"{name}=***" if equals else "***"


def _is_public(scheme: str, user: str) -> bool:
    """Whether the part before @ is not secret."""
    return user == "anonymous" or (scheme.removesuffix("://").lower() in _NO_SECRET_USER and ":" not in user)


def _secrets(uri: str) -> set[str]:
    """The secrets that `masked` hides, whole, in parts and decoded."""
    found: set[str] = set()
    for part in _CHAINED.split(uri):
        scheme, user, _, parameters = _parts(part)
        if user and not _is_public(scheme, user):
            found |= {user, *user.split(":")}
        found |= {text.partition("=")[2] or text for _, text in parameters if _masked_parameter(text) != text}
    found |= {unquote(secret) for secret in found}
    return {secret for secret in found if len(secret) > 3}  # shorter ones are parts of words


def _parts(uri: str) -> tuple[str, str, str, list[tuple[str, str]]]:
    """Scheme, user (all that stands before @), path, and each parameter of the query with the mark before it."""
    found = re.match(rf"(?:[A-Za-z][A-Za-z0-9+.-]*::)*{_SCHEME}", uri)
    scheme = "" if found is None else found[0]
    rest = uri[len(scheme) :]
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    user, at, _ = authority.rpartition("@")
    is_port = not at and re.fullmatch(r"(?:\[.*\]|[^:]*):\d*", authority) is not None
    if ":" in authority.partition("@")[0] and (not is_port or scheme.lower().startswith(_WITHOUT_PORT)):
        # A password may hold anything where it is not encoded: all up to the last @ may be part of it.
        user, at, _ = rest.rpartition("@")
    rest = rest[len(user) + len(at) :]
    path, mark, query = rest.partition("?")
    marks = [mark, *re.findall("[&;]", query)]
    return scheme, user, path, list(zip(marks, re.split("[&;]", query), strict=True)) if mark else []
