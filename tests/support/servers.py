"""Servers of files on this machine: of HTTP as web servers speak it, and of as much of Hugging Face's hub as reading
needs."""

import contextlib
import hashlib
import json
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Files(SimpleHTTPRequestHandler):
    """Files of a folder, also ranges of their bytes, unless the server is not `ranged`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    ranged = True

    def log_message(self, *_):
        pass

    def send_head(self):
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        path = Path(self.translate_path(self.path))
        if not (self.ranged and found and path.is_file()):
            return super().send_head()
        data = path.read_bytes()
        start, stop = int(found[1]), min(int(found[2]) + 1, len(data))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
        self.send_header("Content-Length", str(stop - start))
        self.end_headers()
        self.wfile.write(data[start:stop])
        return None

    def end_headers(self):
        if self.ranged:
            self.send_header("Accept-Ranges", "bytes")
        super().end_headers()


class Whole(Files):
    """Files that are sent whole, whatever was asked for."""

    ranged = False


class Hub(Files):
    """Datasets in the folders ``user/name`` of a folder, as Hugging Face's hub serves them."""

    def do_GET(self):
        path = self.path.partition("?")[0]
        found = re.fullmatch(r"/api/datasets/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+)(?:/(.*))?)?", path)
        if found is None:
            self.path = re.sub(r"^/datasets/([^/]+/[^/]+)/resolve/[^/]+/", r"/\1/", self.path)
            return super().do_GET()
        folder = Path(self.directory, found[1])
        if not folder.is_dir():
            return self._json({"error": "Repository not found"}, 404)
        if found[2] != "tree":
            return self._json({"id": found[1], "sha": "0" * 40, "private": False, "tags": [], "siblings": []})
        below = folder / (found[4] or "")
        if not below.is_dir():
            return self._json({"error": "not found"}, 404)
        paths = below.rglob("*") if "recursive=True" in self.path or "recursive=true" in self.path else below.iterdir()
        return self._json(
            [
                {
                    "type": "directory" if path.is_dir() else "file",
                    "path": path.relative_to(folder).as_posix(),
                    "size": path.stat().st_size,
                    "oid": hashlib.sha1(path.name.encode()).hexdigest(),
                }
                for path in sorted(paths)
            ]
        )

    def _json(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        if status == 404:
            self.send_header("X-Error-Code", "EntryNotFound" if "tree" in self.path else "RepoNotFound")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextlib.contextmanager
def serving(folder, kind=Files):
    """The address of a server of a folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(kind, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
