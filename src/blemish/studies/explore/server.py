"""The server of the page: this machine only, this address only, this page only.

It listens on the loopback interface. Other programs and users of the machine lack the token in the address. A page of
another site that a browser shows can neither read nor send anything: requests that name another host (as they do after
DNS rebinding), another origin, or another site are refused.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from blemish.core.errors import BlemishError, first_line
from blemish.studies.explore.explorer import MOST_BYTES, Explorer

LOOPBACK = "127.0.0.1"

_log = logging.getLogger(__name__)

# Seconds after which a browser that sends nothing is given up.
_PATIENCE = 60
_TOKEN_BYTES = 18

Answer = tuple[str, bytes, dict[str, str]]


class ExplorerServer(ThreadingHTTPServer):
    """Serves an explorer at ``address``, to whoever knows it; ``port`` 0 takes a free one."""

    daemon_threads = True

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        self._busy = 0
        self._idle = threading.Condition()
        self._closing = False
        super().__init__((LOOPBACK, port), _Handler)
        self.explorer = explorer
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        here = self.server_address[1]
        self.hosts = {f"{LOOPBACK}:{here}", f"localhost:{here}"}
        self.address = f"http://{LOOPBACK}:{here}/{self.token}/"

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Around what is done for a request, which is not begun once the server is being closed."""
        with self._idle:
            if self._closing:
                raise ConnectionError("the explorer ends")
            self._busy += 1
        try:
            yield
        finally:
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()

    def server_close(self) -> None:
        """Stop listening, and wait for what is being done: a thread that is ended inside torch aborts the process."""
        super().server_close()
        with self._idle:
            self._closing = True
            self._idle.wait_for(lambda: self._busy == 0, timeout=_PATIENCE)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """A browser that leaves in the middle of an answer is no fault; whatever else it is goes to the log."""
        _log.debug("a request of %s ended early", client_address, exc_info=True)


class _RefusedError(Exception):
    """A request that is not answered, with the status and the reason."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "blemish", ""
    disable_nagle_algorithm = True  # or small answers would wait for the browser's acknowledgement
    timeout = _PATIENCE
    server: ExplorerServer

    def do_GET(self) -> None:
        """Answer what the page asks for."""
        self._answer({"": self._page, "pixels": self._pixels, "answers": self._told("answers"), "save": self._save})

    def do_POST(self) -> None:
        """Take a picture."""
        self._answer({"pictures": self._picture})

    def _answer(self, known: Mapping[str, Callable[[dict[str, str]], Answer]]) -> None:
        if self.command == "GET":
            known = {**known, "copies": self._told("copies")}
        try:
            path, query = self._asked()
            if path not in known:
                raise _RefusedError(HTTPStatus.NOT_FOUND, "nothing is here")
            with self.server.working():
                kind, content, headers = known[path](query)
            self._send(HTTPStatus.OK, kind, content, headers)
        except _RefusedError as refusal:
            # What was sent with it is not read, so nothing else can come over this connection.
            self.close_connection = True
            self._complain(refusal.status, str(refusal))
        except BlemishError as error:
            self._complain(HTTPStatus.BAD_REQUEST, str(error))
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:  # a model may raise anything
            _log.exception("a request failed")
            self._complain(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {first_line(error)}")

    def _asked(self) -> tuple[str, dict[str, str]]:
        """The part of the address behind the token, once the request is known to be the page's own."""
        headers = self.headers
        if headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            raise _RefusedError(
                HTTPStatus.FORBIDDEN, "asked for by another name; expected the address that was printed"
            )
        origin = headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.server.hosts}:
            raise _RefusedError(HTTPStatus.FORBIDDEN, "asked for by another site")
        address = urlsplit(self.path)
        token, slash, path = address.path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise _RefusedError(
                HTTPStatus.FORBIDDEN, "this address lacks its token; open the whole one that was printed"
            )
        # The page itself may be opened by a link, such as one that a notebook shows; nothing else comes from elsewhere.
        opened = not path and headers.get("Sec-Fetch-Dest") == "document"
        if not opened and headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "asked for by another site")
        try:
            query = dict(parse_qsl(address.query, keep_blank_values=True, strict_parsing=True, max_num_fields=9))
        except ValueError:
            if address.query:
                raise _RefusedError(HTTPStatus.BAD_REQUEST, "an address that cannot be read") from None
            query = {}
        return path, query

    def _page(self, _: dict[str, str]) -> Answer:
        policy = {"Content-Security-Policy": f"{self.server.explorer.policy}; frame-ancestors 'none'"}
        return "text/html; charset=utf-8", self.server.explorer.page().encode(), policy

    def _pixels(self, query: dict[str, str]) -> Answer:
        made = self.server.explorer.pixels(query)
        size = {"X-Size": f"{made.width}x{made.height}", "X-Milliseconds": f"{made.milliseconds:.2f}"}
        return "application/octet-stream", made.content, size

    def _told(self, what: str) -> Callable[[dict[str, str]], Answer]:
        def tell(query: dict[str, str]) -> Answer:
            return "application/json", json.dumps(getattr(self.server.explorer, what)(query)).encode(), {}

        return tell

    def _save(self, query: dict[str, str]) -> Answer:
        name, content = self.server.explorer.saved(query)
        return "image/png", content, {"Content-Disposition": f'attachment; filename="{name}"'}

    def _picture(self, query: dict[str, str]) -> Answer:
        entry = self.server.explorer.add(self._body(), query.get("name", "picture"))
        return "application/json", json.dumps(entry).encode(), {}

    def _body(self) -> bytes:
        """What was sent, which has to say how long it is."""
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "no length; expected a whole picture file")
        if len(length) > 20 or int(length) > MOST_BYTES:
            most = f"{MOST_BYTES / 1e6:.0f} MB"
            raise _RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a file of {length[:20]} bytes; expected at most {most}"
            )
        content = self.rfile.read(int(length))
        if len(content) < int(length):
            raise ConnectionError("the browser left before the whole file was there")
        return content

    def _complain(self, status: HTTPStatus, reason: str) -> None:
        self._send(status, "application/json", json.dumps({"error": reason}).encode(), {})

    def _send(self, status: HTTPStatus, kind: str, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        usual = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Connection": "close" if self.close_connection else "keep-alive",
        }
        for name, value in {**usual, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """What the standard library refuses itself, such as other methods, in our form."""
        self.close_connection = True
        self._complain(HTTPStatus(code), message or HTTPStatus(code).phrase)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing on stderr: the address has the token in it."""
