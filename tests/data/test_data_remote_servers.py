"""Images on real servers on the loopback: one that speaks S3, behind connections that break, and a web server."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import blemish.data.fetching as fetching
from blemish.core.errors import InputError, StorageError
from blemish.data.cache import load
from blemish.data.open import open_source
from blemish.data.source import Source
from breaking_proxy import BreakingProxy
from command_line import command
from file_servers import GoogleFiles, HubFiles, WebFiles, serving
from foreign import foreign
from image_tables import image_table, write_table
from tar_files import tar_bytes

pytestmark = [
    pytest.mark.slow,
    # Of sessions that libraries leave open when their file system is thrown away.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
s3fs = foreign("s3fs")
moto = foreign("moto.server")


def levels(source: Source) -> list[int]:
    return [int(np.asarray(source.read(i))[0, 0, 0]) for i in range(len(source))]


class Bucket:
    """A bucket on the server, filled past the proxy."""

    def __init__(self, name: str, server: tuple[str, int]) -> None:
        boto3 = foreign("boto3")
        self.name = name
        self._client = boto3.client("s3", endpoint_url="http://{}:{}".format(*server))
        self._client.create_bucket(Bucket=name)

    def put(self, key: str, content: bytes) -> None:
        self._client.put_object(Bucket=self.name, Key=key, Body=content)

    def __str__(self) -> str:
        return self.name


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, int]]:
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    yield running.get_host_and_port()
    running.stop()


@pytest.fixture
def proxy(server: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BreakingProxy]:
    """The way to the server; the cache is the test's own, and attempts follow each other at once."""
    with BreakingProxy(*server) as between:
        settings = {
            "AWS_ENDPOINT_URL": between.address,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "BLEMISH_REMOTE_CACHE": str(tmp_path / "cache"),
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(fetching, "_PAUSES", (0.01, 0.01, 0.01))
        monkeypatch.setattr(fetching, "_PIECE", 4000)
        s3fs.S3FileSystem.clear_instance_cache()
        yield between
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(proxy: BreakingProxy, server: tuple[str, int], request: pytest.FixtureRequest) -> Bucket:
    """A bucket for each test, with three shards of eight pictures."""
    made = Bucket(f"b-{hashlib.md5(request.node.nodeid.encode()).hexdigest()[:12]}", server)
    for number in range(3):
        made.put(f"v-{number}.tar", tar_bytes(range(8 * number, 8 * number + 8)))
    assert proxy.asked == 0
    return made


def fingerprint(folder: Path) -> str:
    """What the same shards give when they lie here."""
    for number in range(3):
        (folder / f"v-{number}.tar").write_bytes(tar_bytes(range(8 * number, 8 * number + 8)))
    return load(open_source(folder / "v-{0..2}.tar")).fingerprint


def elsewhere(address: str, **settings: str) -> subprocess.Popen[str]:
    """A process that prints the fingerprint of the images at an address; libraries see settings from the beginning."""
    code = (
        "import sys\n"
        "import blemish.data.fetching as fetching\n"
        "from blemish.data.cache import load\n"
        "from blemish.data.open import open_source\n"
        "fetching._PIECE = 7000\n"
        "print(load(open_source(sys.argv[1])).fingerprint)\n"
    )
    given = [sys.executable, "-c", code, address]
    return subprocess.Popen(given, stdout=subprocess.PIPE, text=True, env={**os.environ, **settings})


class TestS3:
    def test_the_three_kinds_of_files(self, bucket: Bucket, tmp_path: Path) -> None:
        assert load(open_source(f"s3://{bucket}/v-{{0..2}}.tar")).fingerprint == fingerprint(tmp_path)
        assert levels(open_source(f"s3://{bucket}/v-*.tar")) == list(range(24))
        assert levels(open_source(f"s3://{bucket}")) == list(range(24))
        table = write_table(tmp_path / "x.parquet", image_table(range(9), [0, 1, 2] * 3, ["a", "b", "c"]))
        bucket.put("t/x.parquet", table.read_bytes())
        remote = open_source(f"s3://{bucket}/t/x.parquet")
        assert load(remote).fingerprint == load(open_source(table)).fingerprint
        images = np.arange(5 * 8 * 8 * 3).reshape(5, 8, 8, 3).astype(np.uint8)
        np.savez(tmp_path / "a.npz", images=images, labels=np.arange(5))
        bucket.put("a.npz", (tmp_path / "a.npz").read_bytes())
        arrays = open_source(f"s3://{bucket}/a.npz")
        assert load(arrays).fingerprint == load(open_source(tmp_path / "a.npz")).fingerprint

    def test_connections_that_break_in_the_middle(self, bucket: Bucket, proxy: BreakingProxy, tmp_path: Path) -> None:
        proxy.breaks = 12
        assert load(open_source(f"s3://{bucket}/v-{{0..2}}.tar")).fingerprint == fingerprint(tmp_path)
        assert proxy.broken == 12

    def test_a_connection_that_always_breaks(self, bucket: Bucket, proxy: BreakingProxy, tmp_path: Path) -> None:
        """Nothing is taken for the whole, and nothing is left behind."""
        proxy.breaks = 10**6
        system = s3fs.S3FileSystem()
        system.retries = 1
        with pytest.raises(StorageError, match=rf"s3://{bucket}/v-0\.tar: cannot be fetched \(.*\); tried 4 times"):
            open_source(f"s3://{bucket}/v-0.tar")
        assert list((tmp_path / "cache").iterdir()) == []
        proxy.breaks = 0
        assert levels(open_source(f"s3://{bucket}/v-0.tar")) == list(range(8))

    def test_a_cache_that_is_used_again(self, bucket: Bucket, proxy: BreakingProxy) -> None:
        address = f"s3://{bucket}/v-{{0..2}}.tar"
        first = load(open_source(address)).fingerprint
        asked = proxy.asked
        assert asked > 3
        assert load(open_source(address)).fingerprint == first
        assert proxy.asked == asked
        bucket.put("v-1.tar", tar_bytes(range(80, 88)))
        assert levels(open_source(address))[8:16] == list(range(80, 88))
        assert proxy.asked > asked

    def test_a_small_cache(self, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        size = len(tar_bytes(range(8)))
        monkeypatch.setenv("BLEMISH_REMOTE_CACHE_GB", str(1.5 * size / 2**30))
        assert load(open_source(f"s3://{bucket}/v-{{0..2}}.tar")).fingerprint == fingerprint(tmp_path)
        assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 1.5 * size

    def test_what_is_not_there(self, bucket: Bucket) -> None:
        with pytest.raises(InputError, match=rf"s3://{bucket}/nowhere\.tar: no such file"):
            open_source(f"s3://{bucket}/nowhere.tar")
        with pytest.raises(InputError, match=r"s3://no-such-bucket-here/x\.tar: no such file"):
            open_source("s3://no-such-bucket-here/x.tar")

    def test_two_processes_share_the_cache(self, bucket: Bucket, proxy: BreakingProxy, tmp_path: Path) -> None:
        proxy.breaks = 4
        both = [elsewhere(f"s3://{bucket}/v-{{0..2}}.tar") for _ in range(2)]
        assert {process.communicate(timeout=120)[0].strip() for process in both} == {fingerprint(tmp_path)}
        assert len(list((tmp_path / "cache").iterdir())) == 3

    def test_a_run_that_is_limited_resumed_and_shared_out(
        self, bucket: Bucket, proxy: BreakingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        proxy.breaks = 3
        options = ("run", "digits-c", "-m", "demo:plain", "-o", "out", "--device", "cpu", "--anyway")
        data = ("-d", f"s3://{bucket}/v-{{0..2}}.tar")
        for more in (
            ("--limit", 10, "--only", "contrast@1"),
            ("--limit", 20, "--only", "contrast@1,fog@1", "--jobs", 2),
        ):
            result = command(*options, *data, *more)
            assert result.exit_code == 0, result.output
        bucket.put("v-1.tar", tar_bytes(range(80, 88)))
        other = command(*options, *data, "--limit", 20, "--only", "contrast@1,fog@1")
        assert other.exit_code == 2
        assert "holds results of another run" in other.stderr


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, type[WebFiles]]]:
    foreign("aiohttp")
    monkeypatch.setenv("BLEMISH_REMOTE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "_PAUSES", (0.01, 0.01, 0.01))
    monkeypatch.setattr(fetching, "_PIECE", 7000)
    kind = type("Own", (WebFiles,), {"files": {"/v.tar": tar_bytes(range(30))}})
    with serving(kind) as address:
        yield address, kind


class TestWeb:
    @pytest.mark.parametrize("ranges", [True, False], ids=["pieces", "whole"])
    def test_a_server_that_breaks_off(self, web: tuple[str, type[WebFiles]], ranges: bool) -> None:
        address, kind = web
        kind.ranges, kind.breaks = ranges, 3
        assert levels(open_source(f"{address}/v.tar?signature=secret")) == list(range(30))
        assert kind.breaks == 0

    def test_a_server_that_always_breaks_off(self, web: tuple[str, type[WebFiles]], tmp_path: Path) -> None:
        address, kind = web
        kind.breaks = 10**6
        with pytest.raises(StorageError, match=r"/v\.tar: cannot be fetched \(.*tried 4 times") as caught:
            open_source(f"{address}/v.tar?signature=secret")
        assert "secret" not in str(caught.value)
        assert list((tmp_path / "cache").iterdir()) == []

    @pytest.mark.parametrize("tags", [True, False])
    def test_versions(self, web: tuple[str, type[WebFiles]], tags: bool) -> None:
        address, kind = web
        kind.tags = tags
        assert levels(open_source(f"{address}/v.tar")) == list(range(30))
        kind.files["/v.tar"] = tar_bytes(range(40, 70))
        assert levels(open_source(f"{address}/v.tar")) == list(range(40, 70))

    def test_folders_and_stars(self, web: tuple[str, type[WebFiles]]) -> None:
        for path in ("folder", "v-*.tar"):
            with pytest.raises(InputError, match="folders and stars cannot be looked up on a web server"):
                open_source(f"{web[0]}/{path}")

    @pytest.mark.usefixtures("web")
    def test_no_server(self) -> None:
        """A port that was free a moment ago."""
        with serving(WebFiles) as address:
            pass
        with pytest.raises(StorageError, match=r"v\.tar: cannot be fetched \(ClientConnectorError: .*tried 4 times"):
            open_source(f"{address}/v.tar")

    def test_what_is_not_there(self, web: tuple[str, type[WebFiles]]) -> None:
        address, _ = web
        with pytest.raises(InputError, match=r"/nowhere\.tar: no such file"):
            open_source(f"{address}/nowhere.tar")
        with pytest.raises(InputError, match=r"/forbidden\.tar: cannot be read \(403") as caught:
            open_source(f"{address}/forbidden.tar?signature=secret")
        assert "secret" not in str(caught.value)


class TestOtherStores:
    """The clients of the hub and of Google, each with a server that speaks as much as they ask for."""

    @pytest.mark.parametrize("address", ["hf://datasets/org/name/data/v.tar", "hf://datasets/org/name/data"])
    def test_the_hub(self, tmp_path: Path, address: str) -> None:
        foreign("huggingface_hub")
        with serving(type("Own", (HubFiles,), {"content": tar_bytes(range(20))})) as server:
            given = {"HF_ENDPOINT": server, "HF_HUB_OFFLINE": "0", "BLEMISH_REMOTE_CACHE": str(tmp_path / "cache")}
            found = elsewhere(address, **given).communicate(timeout=120)[0].strip()
        (tmp_path / "v.tar").write_bytes(tar_bytes(range(20)))
        assert found == load(open_source(tmp_path / "v.tar")).fingerprint

    @pytest.mark.parametrize("address", ["gs://bucket/data/v.tar", "gs://bucket/data"])
    def test_google(self, tmp_path: Path, address: str) -> None:
        foreign("gcsfs")
        with serving(type("Own", (GoogleFiles,), {"content": tar_bytes(range(20))})) as server:
            given = {
                "STORAGE_EMULATOR_HOST": server,
                "FSSPEC_GS_TOKEN": "anon",
                "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # asks another protocol what kind of bucket it is
                "BLEMISH_REMOTE_CACHE": str(tmp_path / "cache"),
            }
            found = elsewhere(address, **given).communicate(timeout=120)[0].strip()
        (tmp_path / "v.tar").write_bytes(tar_bytes(range(20)))
        assert found == load(open_source(tmp_path / "v.tar")).fingerprint
