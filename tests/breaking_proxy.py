"""A proxy in front of a server, whose connections break in the middle of what the server says."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from types import TracebackType

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)


class BreakingProxy:
    """Passes everything on, but for the answers to ``breaks`` requests of files: those end half way.

    ``asked`` counts the requests of files, and ``broken`` the connections that were ended.
    """

    def __init__(self, host: str, port: int, *, breaks: int = 0) -> None:
        self.breaks, self.asked, self.broken = breaks, 0, 0
        self._target = (host, port)
        self._guard = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> BreakingProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """One request after the other of one connection, each with its answer."""
        with client, contextlib.suppress(OSError), socket.create_connection(self._target) as server:
            while request := _message(client):
                server.sendall(request)
                head = _until_blank_line(server)
                wanted = request.startswith(b"GET ") and b".tar" in request.split(b"\r\n")[0]
                length = 0 if request.startswith(b"HEAD ") else _length(head)
                if self._is_broken(wanted, length):
                    client.sendall(head + _exactly(server, length)[: length // 2])
                    return
                client.sendall(head + _exactly(server, length))

    def _is_broken(self, wanted: bool, length: int) -> bool:
        with self._guard:
            self.asked += wanted
            if not wanted or length < 2 or self.breaks <= 0:
                return False
            self.breaks -= 1
            self.broken += 1
            return True


def _length(head: bytes) -> int:
    match = _LENGTH.search(head)
    return int(match[1]) if match else 0


def _message(stream: socket.socket) -> bytes:
    head = _until_blank_line(stream)
    return head + _exactly(stream, _length(head)) if head else b""


def _until_blank_line(stream: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = stream.recv(1)
        if not byte:
            return b""
        head += byte
    return head


def _exactly(stream: socket.socket, count: int) -> bytes:
    parts = []
    while count > 0:
        part = stream.recv(min(count, 2**16))
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
