"""Servers of files on the loopback: a plain one, and as much of the hub's and of Google's as their clients ask for."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


@contextlib.contextmanager
def serving(kind: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server that answers by this class."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


class _Answers(BaseHTTPRequestHandler):
    """Answers to all methods come from `answer`."""

    def do_GET(self) -> None:
        self.answer(unquote(self.path.partition("?")[0]))

    do_HEAD = do_GET  # noqa: N815

    def answer(self, path: str) -> None:
        raise NotImplementedError

    def send_json(self, value: Any) -> None:
        self.send_whole(json.dumps(value).encode(), {"Content-Type": "application/json"})

    def send_whole(self, content: bytes, headers: dict[str, str], *, code: int = 200, half: bool = False) -> None:
        """An answer, of which only half is sent where it is to break off."""
        self.send_response(code)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if half else content)

    def send_span(self, content: bytes, headers: dict[str, str]) -> None:
        """The part of a file that was asked for."""
        span = self.headers.get("Range")
        if span is None:
            self.send_whole(content, {"Accept-Ranges": "bytes", **headers})
            return
        start, stop = map(int, span.removeprefix("bytes=").split("-"))
        part = content[start : stop + 1]
        place = {"Content-Range": f"bytes {start}-{start + len(part) - 1}/{len(content)}"}
        self.send_whole(part, {"Accept-Ranges": "bytes", **place, **headers}, code=206, half=self.breaks_off())

    def breaks_off(self) -> bool:
        """Whether an answer is to end half way."""
        return False

    def log_message(self, *_: Any) -> None:
        pass


class WebFiles(_Answers):
    """Files by name, whole or in pieces, with or without a tag; breaks off as often as it is told."""

    files: dict[str, bytes]
    ranges, tags, breaks = True, True, 0

    def answer(self, path: str) -> None:
        content = type(self).files.get(path)
        if path == "/forbidden.tar":
            self.send_error(403)
            return
        if content is None:
            self.send_error(404)
            return
        headers = {"ETag": f'"{hashlib.md5(content).hexdigest()}"'} if type(self).tags else {}
        if type(self).ranges:
            self.send_span(content, headers)
        else:
            self.send_whole(content, headers, half=self.command != "HEAD" and self.breaks_off())

    def breaks_off(self) -> bool:
        if type(self).breaks <= 0:
            return False
        type(self).breaks -= 1
        self.close_connection = True
        return True


class HubFiles(_Answers):
    """The file data/v.tar in a dataset of the hub."""

    content: bytes

    def answer(self, path: str) -> None:
        if "/resolve/" in path:
            self.send_span(self.content, {"ETag": '"tag"'})
        elif "/tree/" in path:
            entry = {"type": "file", "oid": hashlib.sha1(self.content).hexdigest(), "size": len(self.content)}
            self.send_json([{**entry, "path": "data/v.tar"}])
        elif path == "/api/datasets/org/name":
            self.send_json({"id": "org/name", "sha": "a" * 40, "siblings": [], "private": False, "tags": []})
        else:
            self.send_error(404)


class GoogleFiles(_Answers):
    """The object data/v.tar in a bucket of Google's."""

    content: bytes

    def answer(self, path: str) -> None:
        entry = {
            "kind": "storage#object",
            "name": "data/v.tar",
            "bucket": "bucket",
            "size": str(len(self.content)),
            "etag": "tag",
            "generation": "1",
            "updated": "2026-01-01T00:00:00Z",
            "timeCreated": "2026-01-01T00:00:00Z",
            "mediaLink": f"http://{self.headers['Host']}/download/storage/v1/b/bucket/o/data%2Fv.tar?alt=media",
        }
        if path.startswith("/download/"):
            self.send_span(self.content, {})
        elif path == "/storage/v1/b/bucket/o/data/v.tar":
            self.send_json(entry)
        elif path == "/storage/v1/b/bucket/o":
            self.send_json({"kind": "storage#objects", "items": [entry]})
        else:
            self.send_error(404)
