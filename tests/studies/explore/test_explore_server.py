"""The server answers its own page and nobody else, and takes whole pictures of a fair size only."""

from __future__ import annotations

import http.client
import io
import json
import random
import socket
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import numpy as np
import pytest
from PIL import Image

from blemish.core.errors import StorageError
from blemish.data.demo import demo_picture
from blemish.data.pictures import MAX_PIXELS, decode_picture
from blemish.studies.explore.explorer import MOST_BYTES
from blemish.studies.explore.server import ExplorerServer
from blemish.studies.explore.show import server_for
from blemish.studies.explore.views import View
from explorers import served, subject
from hostile_files import hostile_contents, not_for_ever


@pytest.fixture(scope="module")
def server() -> Iterator[ExplorerServer]:
    with not_for_ever(), served(subject(side=64)) as running:
        yield running


def ask(
    server: ExplorerServer,
    what: str,
    query: dict[str, object] | None = None,
    *,
    token: str | None = None,
    method: str = "GET",
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    path = f"/{server.token if token is None else token}/{what}"
    connection.request(method, f"{path}?{urlencode(query)}" if query else path, body=body, headers=headers or {})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, dict(response.getheaders()), content


def key_of(server: ExplorerServer) -> str:
    return next(iter(server.explorer.shelf.given()))


def view(server: ExplorerServer, condition: str = "contrast@2", **more: object) -> dict[str, object]:
    return {"picture": key_of(server), "c": condition, "seed": 3, **more}


def png(side: int = 40) -> bytes:
    content = io.BytesIO()
    demo_picture(side).save(content, "PNG")
    return content.getvalue()


def test_pixels_are_those_of_the_library(server: ExplorerServer) -> None:
    status, headers, content = ask(server, "pixels", view(server, "gaussian_noise@1.7"))
    assert (status, headers["X-Size"]) == (200, "64x64")
    picture = server.explorer.shelf[key_of(server)]
    expected = View.of("gaussian_noise@1.7", 3).pixels(picture).permute(1, 2, 0).numpy()
    canvas = np.frombuffer(content, dtype=np.uint8).reshape(64, 64, 4)
    assert np.array_equal(canvas[..., :3], expected)
    assert (canvas[..., 3] == 255).all()
    status, headers, content = ask(server, "save", view(server, "gaussian_noise@1.7"))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(content))), expected)
    assert headers["Content-Disposition"].endswith('gaussian_noise@1.7.png"')


def test_it_listens_to_this_machine_alone(server: ExplorerServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 20
    with served(subject(side=64)) as other:
        assert other.token != server.token


@pytest.mark.parametrize("token", ["", "x", "é", "a" * 5000, "%00"])
@pytest.mark.parametrize("what", ["", "pixels", "answers", "copies", "save"])
def test_a_wrong_or_missing_token_is_refused(server: ExplorerServer, token: str, what: str) -> None:
    status, _, content = ask(server, what, view(server, model=0), token=quote(token))
    assert status == 403
    assert "token" in json.loads(content)["error"]


def test_part_of_the_token_is_refused_and_so_is_a_bare_address(server: ExplorerServer) -> None:
    assert ask(server, "", token=server.token[:-1])[0] == 403
    assert ask(server, "", token=f"{server.token}x")[0] == 403
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    for path in ("/", f"/{server.token}", "/favicon.ico", f"/../{server.token}/"):
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        connection.close()
        assert response.status == 403, path


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_other_hosts_and_sites_are_refused(server: ExplorerServer, headers: dict[str, str]) -> None:
    """As after DNS rebinding, or from a page that knows the token."""
    for what, method in (("pixels", "GET"), ("pictures", "POST")):
        status, _, content = ask(server, what, view(server), method=method, body=None, headers=headers)
        assert status == 403
        assert "asked for by another" in json.loads(content)["error"]


def test_both_names_of_this_machine_and_links_are_taken(server: ExplorerServer) -> None:
    port = server.server_address[1]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        same = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        assert ask(server, "pixels", view(server), headers=same)[0] == 200
    opened = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    assert ask(server, "", headers=opened)[0] == 200
    assert ask(server, "pixels", view(server), headers=opened)[0] == 403
    assert ask(server, "", headers={**opened, "Sec-Fetch-Dest": "iframe"})[0] == 403


def test_the_page_may_load_nothing(server: ExplorerServer) -> None:
    status, headers, content = ask(server, "")
    page = content.decode()
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "frame-ancestors 'none'" in policy
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cache-Control"] == "no-store"
    assert server.token not in page
    assert not [
        word for word in ("http://", "https://", 'src="/') if word in page.replace("http://www.w3.org/2000/svg", "")
    ]


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ({"c": "fog@9"}, "severity 9"),
        ({"c": "nothing@1"}, "nothing"),
        ({"c": "<b>@1"}, "<b>"),
        ({"seed": "-1"}, "whole number"),
        ({"seed": "1e3"}, "whole number"),
        ({"seed": "9" * 20}, "seed"),
        ({"picture": "gone"}, "drop it"),
        ({"c": "p:tilt@1"}, "expected clean"),
    ],
    ids=str,
)
def test_bad_questions_are_told_what_was_expected(server: ExplorerServer, query: dict[str, str], word: str) -> None:
    for what in ("pixels", "answers", "copies", "save"):
        status, _, content = ask(server, what, view(server) | {"model": 0} | query)
        assert status == 400
        assert word in json.loads(content)["error"]
    assert ask(server, "answers", view(server, model=1))[0] == 400
    assert ask(server, "pixels", {"seed": 0})[0] == 400
    assert ask(server, "nothing")[0] == 404
    assert ask(server, "pixels", view(server), method="POST", body=b"")[0] == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"])
def test_other_methods_are_refused(server: ExplorerServer, method: str) -> None:
    assert ask(server, "", method=method)[0] == 501


def test_a_picture_is_taken_and_shown(server: ExplorerServer) -> None:
    status, _, content = ask(server, "pictures", {"name": "../../etc/<b>.png"}, method="POST", body=png())
    entry = json.loads(content)
    assert (status, entry["name"], entry["width"]) == (200, "<b>.png", 40)
    status, headers, _ = ask(server, "pixels", view(server) | {"picture": entry["key"]})
    assert (status, headers["X-Size"]) == (200, "40x40")


def bomb() -> bytes:
    """A PNG of a few bytes that claims more pixels than are decoded."""
    content = io.BytesIO()
    Image.new("1", (1, 1)).save(content, "PNG")
    data = bytearray(content.getvalue())
    side = int(MAX_PIXELS**0.5) + 1
    data[16:24] = side.to_bytes(4, "big") * 2
    data[29:33] = zlib.crc32(data[12:29]).to_bytes(4, "big")
    return bytes(data)


def test_damaged_and_hostile_uploads_are_refused(server: ExplorerServer) -> None:
    contents = hostile_contents(png())
    for name in ("more behind it", "one byte short"):  # which read as whole pictures, from files as well
        assert decode_picture(contents.pop(name), name).size == (40, 40)
    contents["a bomb"] = bomb()
    contents["a script"] = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"
    contents["a page"] = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    small = io.BytesIO()
    Image.new("RGB", (4, 400)).save(small, "PNG")
    contents["too small"] = small.getvalue()
    before = len(server.explorer.shelf._dropped)
    for name, content in contents.items():
        status, _, answer = ask(server, "pictures", {"name": "a.png"}, method="POST", body=content)
        assert status == 400, name
        assert json.loads(answer)["error"].startswith("a.png: "), name
    assert len(server.explorer.shelf._dropped) == before
    assert ask(server, "pixels", view(server))[0] == 200


def raw(server: ExplorerServer, head: str) -> int:
    """The status of an answer to a request that says something else than it sends."""
    with socket.create_connection(server.server_address[:2], timeout=60) as connection:
        connection.sendall(head.encode())
        return int(connection.recv(100).split()[1])


def test_oversized_uploads_are_refused_before_they_are_read(server: ExplorerServer) -> None:
    begin = f"POST /{server.token}/pictures HTTP/1.1\r\nHost: 127.0.0.1:{server.server_address[1]}\r\n"
    assert raw(server, f"{begin}Content-Length: {MOST_BYTES + 1}\r\n\r\n") == 413
    assert raw(server, f"{begin}Content-Length: {'9' * 4000}\r\n\r\n") == 413
    for length in ("", "Content-Length: -1\r\n", "Content-Length: ٣\r\n", "Transfer-Encoding: chunked\r\n"):
        assert raw(server, f"{begin}{length}\r\n") == 411
    two = f"{begin}Host: 127.0.0.1:{server.server_address[1]}\r\n\r\n"
    assert raw(server, two) == 403


def test_an_upload_that_breaks_off_leaves_nothing(server: ExplorerServer) -> None:
    before = len(server.explorer.shelf._dropped)
    with socket.create_connection(server.server_address[:2], timeout=60) as connection:
        head = f"POST /{server.token}/pictures HTTP/1.1\r\nHost: 127.0.0.1:{server.server_address[1]}\r\n"
        connection.sendall(f"{head}Content-Length: 5000\r\n\r\n".encode() + random.Random(0).randbytes(100))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert len(server.explorer.shelf._dropped) == before


def test_closing_waits_for_what_is_being_done() -> None:
    """Or the process would be aborted now and then: threads may not be ended inside torch."""
    what = subject(side=64)
    begun, go_on = threading.Event(), threading.Event()
    finished = []

    def slow(*_: object) -> None:
        begun.set()
        go_on.wait(60)
        finished.append(True)
        raise RuntimeError("late")

    what.witnesses[0]._asked = slow  # type: ignore[method-assign]
    with served(what) as server:
        asking = threading.Thread(target=ask, args=(server, "answers", view(server, model=0)))
        asking.start()
        assert begun.wait(60)
        threading.Timer(0.2, go_on.set).start()
    assert finished
    with pytest.raises(ConnectionError), server.working():
        pass
    asking.join()


def test_a_port_that_is_taken_is_named(server: ExplorerServer) -> None:
    with pytest.raises(StorageError, match=r"cannot listen on 127\.0\.0\.1, port"):
        server_for(subject(side=64), port=server.server_address[1])


def test_a_model_that_raises_is_told(tmp_path: Path) -> None:
    what = subject(side=64)

    def broken(*_: object) -> None:
        raise RuntimeError("no weights")

    what.witnesses[0]._asked = broken  # type: ignore[method-assign]
    with served(what) as server:
        status, _, content = ask(server, "answers", view(server, model=0))
        assert (status, json.loads(content)) == (500, {"error": "RuntimeError: no weights"})
        assert ask(server, "pixels", view(server))[0] == 200
