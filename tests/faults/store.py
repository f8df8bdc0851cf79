"""An object store in memory, whose keys may be anything: what S3 and its like allow, through Arrow's own interface."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import fs


class Keys(fs.FileSystemHandler):
    """Objects by key; a folder is whatever a key goes on behind with a slash."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keys) and other.objects == self.objects

    def get_type_name(self) -> str:
        return "keys"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        found = []
        for path in paths:
            kind = fs.FileType.File if path in self.objects else fs.FileType.NotFound
            if any(key.startswith(f"{path.rstrip('/')}/") for key in self.objects):
                kind = fs.FileType.Directory
            found.append(fs.FileInfo(path, kind, size=len(self.objects.get(path, b""))))
        return found

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        prefix = f"{selector.base_dir.rstrip('/')}/"
        inside = [key for key in self.objects if key.startswith(prefix)]
        if not selector.recursive:
            inside = [key for key in inside if "/" not in key[len(prefix) :]]
        return [fs.FileInfo(key, fs.FileType.File, size=len(self.objects[key])) for key in inside]

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        if path not in self.objects:
            raise FileNotFoundError(path)
        return pa.PythonFile(pa.BufferReader(self.objects[path]), mode="r")

    def _no(self, *arguments: Any, **options: Any) -> Any:
        raise NotImplementedError("the store is read only")

    create_dir = delete_dir = delete_dir_contents = delete_file = delete_root_dir_contents = _no
    move = copy_file = open_output_stream = open_append_stream = _no


def mount(objects: dict[str, bytes | str]) -> None:
    """Let URIs of this process, whatever their scheme, name objects of this store: ``s3://bucket/key``."""
    from neardup_gpu.documents import find

    store = fs.PyFileSystem(Keys({key: v.encode() if isinstance(v, str) else v for key, v in objects.items()}))

    def file_system(uri: str) -> tuple[fs.FileSystem, str]:
        path = uri.partition("://")[2].partition("?")[0]
        authority, slash, rest = path.partition("/")
        return store, authority.rpartition("@")[2] + slash + rest

    find.file_system = file_system
