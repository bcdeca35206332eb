"""A bucket may hold anything: content that no store wrote gives an error of the store, never another one."""

from __future__ import annotations

import hashlib
import json
import logging
import struct
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from store import Store
from store.backend import open_backend
from store.backend.read_only import ReadOnlyBackend
from store.element import SAFETENSORS, describe_tensors
from store.errors import ConfigurationError, HeadMoved, IntegrityError, InvalidPayload, InvalidURL
from store.format import (
    INDEX_PREFIX,
    LOG_PREFIX,
    checkpoint_key,
    history_key,
    log_key,
    seal,
    sha256,
    snapshot_key,
    unseal,
)
from store.gc import collect
from store.history import Block, decode_block, encode_block
from store.manifest import Checkpoint, encode_checkpoint
from store.pack import END, FRAME, MAGIC, frames
from store.parquet import encode_table
from store.refs import read_ref
from store.repair import repair
from store.rows import SCHEMA, decode_table, encode_rows, rows_of
from store.sparse import SparseTable, regions_of
from tests.store.samples import codec, memory

KEY = f"{INDEX_PREFIX}hostile.parquet"
ROW: dict[str, Any] = {
    "name": "skill/x",
    "kind": "skill",
    "version": "a" * 64,
    "digest": "b" * 64,
    "pack": "c" * 64,
    "offset": 8,
    "length": 3,
    "media": "text/plain",
    "requires": ["d" * 64],
    "recipe": "",
    "provenance": "{}",
    "facts": "{}",
    "dtype": "",
    "shape": [],
    "commit": 1,
}


def table(schema: pa.Schema = SCHEMA, metadata: object = None, **changes: object) -> bytes:
    """Return an index file of one row that differs from a good one in `changes`."""
    text = json.dumps({"packs": {}} if metadata is None else metadata)
    rows = pa.Table.from_pylist([ROW | changes], schema=schema.with_metadata({"cellar": text}))
    return encode_table(rows)


def test_the_unchanged_row_is_read() -> None:
    [row] = rows_of(decode_table(table(), KEY)[0])

    assert (row.name, row.offset, row.requires) == ("skill/x", 8, ("d" * 64,))


@pytest.mark.parametrize(
    "data",
    [b"[" * 200_000, b'{"a":' * 200_000, b"[1]", b"null", b'"x"', b"\xff\xfe", b"", b"9" * 5000],
    ids=lambda data: repr(data[:6]),
)
def test_a_record_that_is_no_sealed_object_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError, match="the-key"):
        unseal(data, "the-key")


@pytest.mark.parametrize("record", [{}, {"n": "1"}, {"n": True}, {"n": None}])
def test_a_sealed_record_without_a_needed_field_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(IntegrityError, match=r"the-key .*'n'"):
        unseal(seal(record), "the-key", {"n": int})
    assert unseal(seal({"n": 1}), "the-key", {"n": int})["n"] == 1


@pytest.mark.parametrize(
    "changes",
    [
        *({name: None} for name in ROW),
        {"requires": [None]},
        {"requires": ["x"]},
        {"shape": [None]},
        {"facts": "{"},
        {"facts": "[]"},
        {"facts": "[" * 200_000},
        {"facts": '{"a":NaN}'},
        {"provenance": '{"a":1e999}'},
        {"provenance": '{"a":"\\ud800"}'},
        {"length": 2**50},
        {"length": -1},
        {"offset": 0},
        {"offset": -(2**40)},
        {"commit": -1},
        {"name": "skill/../x"},
        {"name": "x"},
        {"kind": "memory"},
        {"version": "A" * 64},
        {"pack": "../../etc/passwd"},
        {"metadata": [1]},
        {"metadata": {"packs": []}},
        {"metadata": {"packs": {"p": "8"}}},
        {"metadata": {"other": 1}},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_a_row_that_no_store_wrote_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match=KEY):
        rows_of(decode_table(table(**changes), KEY)[0], [0])


@pytest.mark.parametrize("name", ["version", "offset", "requires"])
def test_a_column_of_another_type_is_refused(name: str) -> None:
    position = SCHEMA.get_field_index(name)
    other = SCHEMA.set(position, pa.field(name, pa.float64()))

    with pytest.raises(IntegrityError, match=f"{KEY} has other columns"):
        decode_table(table(other, **{name: 1.0}), KEY)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"x" * 1000])
def test_a_file_that_is_no_parquet_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError, match=KEY):
        decode_table(data, KEY)


def test_a_small_file_of_very_many_rows_is_refused_before_it_is_read() -> None:
    sink = pa.BufferOutputStream()
    rows = pa.table({"commit": pa.DictionaryArray.from_arrays(pa.array(bytes(2**20), pa.int8()), [0])})
    with pq.ParquetWriter(sink, pa.schema([("commit", pa.int64())]), compression="zstd") as writer:
        for _ in range(65):
            writer.write_table(rows.cast(pa.schema([("commit", pa.int64())])))
    data = sink.getvalue().to_pybytes()

    assert len(data) < 2**20
    with pytest.raises(IntegrityError, match=KEY):
        decode_table(data, KEY)


def test_a_dictionary_cannot_blow_up_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.parquet._MAX_DECODED_BYTES", 2**24)
    text = "x" * 2**16
    rows = pa.Table.from_pylist([ROW | {"media": text}] * 4000, schema=SCHEMA)
    data = encode_table(rows.replace_schema_metadata({"cellar": '{"packs":{}}'}))
    footer = pq.read_metadata(pa.BufferReader(data))

    assert footer.row_group(0).total_byte_size < 2**22  # so the footer alone does not give it away
    with pytest.raises(IntegrityError, match=KEY):
        decode_table(data, KEY)


NESTED = '{"a":[' + "[]," * (6 * 1024**2) + "[]]}"
"""Text of 18 MiB, which takes twenty times that once it is decoded."""


@pytest.mark.parametrize("changes", [{"facts": NESTED}, {"provenance": NESTED}], ids=["facts", "provenance"])
def test_a_row_with_more_text_than_any_element_is_refused(changes: dict[str, Any]) -> None:
    data = table(**changes)

    assert len(data) < 20_000
    with pytest.raises(IntegrityError, match=f"{KEY} has a row that is larger than any can be"):
        decode_table(data, KEY)


def test_a_frame_with_a_larger_head_than_any_is_refused() -> None:
    head = NESTED.encode()
    digest, nothing = hashlib.sha256(head).digest(), hashlib.sha256(b"").digest()
    frame = struct.pack("<4sIQ32s32s", FRAME, len(head), 0, digest, nothing) + head
    footer = json.dumps({"frames": [[8, 8 + len(frame), 0]]}).encode()
    tail = struct.pack("<Q32s8s", len(footer), hashlib.sha256(footer).digest(), END)

    with pytest.raises(IntegrityError, match="pack p is damaged: one of its frames or its footer"):
        list(frames(MAGIC + frame + footer + tail, "p"))


def test_snapshot_rows_are_checked_too(tmp_path: Path) -> None:
    backend = open_backend(str(tmp_path))
    data = table(length=2**50)
    backend.put("rows", data)

    with pytest.raises(IntegrityError, match="rows has an impossible length"):
        SparseTable(backend, "rows", *regions_of(data)).read([0])
    groups, footer = regions_of(table())
    backend.put("rows", table())
    with pytest.raises(IntegrityError, match="rows"):
        SparseTable(backend, "rows", groups * 2, footer).read([1])


def test_an_empty_table_is_read() -> None:
    assert rows_of(decode_table(encode_rows([], {"packs": {}}), KEY)[0]) == []


@pytest.mark.parametrize(
    "header",
    [
        "[" * 200_000,
        '{"a":' * 100_000,
        '{"t":{"dtype":"F32","shape":[1%s],"data_offsets":[0,0]}}' % ("0" * 30),
        '{"t":{"dtype":"F32","shape":[1e999],"data_offsets":[0,0]}}',
        '{"t":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}}',
        '{"t":{"dtype":"F32","shape":[0],"data_offsets":[0,1e999]}}',
        '{"t":{"dtype":"\\ud800","shape":[0],"data_offsets":[0,0]}}',
        '{"t":{"dtype":7,"shape":[0],"data_offsets":[0,0]}}',
    ],
    ids=lambda header: header[:60],
)
def test_a_safetensors_header_with_impossible_values_is_refused(header: str) -> None:
    payload = struct.pack("<Q", len(header)) + header.encode()

    with pytest.raises(InvalidPayload, match="skill/x"):
        describe_tensors(SAFETENSORS, payload, "skill/x")


@pytest.mark.parametrize("url", ["s3://[x/y", "file://[x/y", "file://host/x", "file://", "file:"])
def test_a_malformed_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidURL):
        open_backend(url)


def test_both_ways_to_write_a_file_url_mean_the_same_folder() -> None:
    urls = ["file:/a#b?c%20d", "file:///a#b?c%20d", "file://localhost/a#b?c%20d", "/a#b?c d"]

    assert len({open_backend(url).url for url in urls}) == 1


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.mark.parametrize("endpoint", ["http://host:99999", "http://[host", "host"])
def test_a_malformed_endpoint_is_refused(
    endpoint: str, credentials: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)

    with pytest.raises(InvalidURL, match="AWS_ENDPOINT_URL_S3"):
        open_backend("s3://bucket/x")


class _WebServer(BaseHTTPRequestHandler):
    """Answers every request with the same page, as the start page of some web server does."""

    def do_GET(self) -> None:
        page = b"<html><p>Hello<br></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page)

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def web_server(credentials: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = HTTPServer(("127.0.0.1", 0), _WebServer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_port}")
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "ask",
    [
        lambda backend: backend.read("format.json"),
        lambda backend: backend.info("format.json"),
        lambda backend: backend.put("x", b"x"),
        lambda backend: backend.create("x", b"x"),
        lambda backend: backend.replace("x", b"x", token="t"),
    ],
    ids=["read", "info", "put", "create", "replace"],
)
def test_a_plain_web_server_is_told_apart(web_server: None, ask: Callable[[Any], object]) -> None:
    with pytest.raises(ConfigurationError, match="does not speak S3"):
        ask(open_backend("s3://bucket/x"))


def test_a_head_that_was_moved_can_be_moved_there_again(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    refs = store.publish([codec(), memory(1)], message="two")
    first, second = (store.pin(chosen, message="pin").id for chosen in (refs[:1], refs))

    for _ in range(2):
        store.move_head("main", first, expect=None)
    for _ in range(2):
        store.move_head("main", second, expect=first)

    assert store.head("main") == second
    with pytest.raises(HeadMoved):
        store.move_head("main", first, expect=first)


def test_a_ref_that_names_no_snapshot_is_refused(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    snapshot = store.pin(store.publish([codec()], message="one"), message="pin").id
    for number, record in enumerate(({}, {"snapshot": 1}, {"snapshot": "../x"})):
        key = f"refs/heads/h{number}"
        store.backend.put(key, seal(record))
        with pytest.raises(IntegrityError, match=key):
            read_ref(store.backend, key)
        with pytest.raises(IntegrityError, match=key):
            store.move_head(f"h{number}", snapshot, expect=snapshot)


@pytest.mark.parametrize("self_consistent", [False, True])
def test_a_damaged_checkpoint_is_left_out_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, self_consistent: bool
) -> None:
    store = Store.create(str(tmp_path / "store"))
    for number in range(9):
        store.publish([memory(number, size=16)], message=str(number))
    [path] = (tmp_path / "store" / "log").glob("checkpoint-*")
    data = seal({"sequence": 9}) if self_consistent else b"x" + path.read_bytes()[1:]
    name = checkpoint_key(9, sha256(data)).removeprefix(LOG_PREFIX) if self_consistent else path.name
    path.with_name(name).write_bytes(data)

    with caplog.at_level(logging.WARNING):
        reopened = Store.open(store.url)
        assert len(reopened.catalog().rows()) == 9

    assert name in caplog.text
    assert f"log/{name}" in {finding.key for finding in reopened.verify().findings}
    reopened.publish([memory(100)], message="goes on")


@pytest.mark.parametrize("sealed", [False, True])
def test_a_stray_name_in_the_log_is_told_at_once(tmp_path: Path, sealed: bool) -> None:
    store = Store.create(str(tmp_path / "store"))
    store.publish([memory(1)], message="one")
    key = log_key(10**19 - 1)
    entry = unseal(store.backend.read(log_key(1)), log_key(1)) | {"sequence": 10**19 - 1}
    store.backend.put(key, seal(entry) if sealed else b"x")
    reads = Counting(store.backend)

    for use in (lambda: list(Store(reads).log()), lambda: collect(Store(reads))):
        with pytest.raises(IntegrityError, match=f"an entry of the log is missing .{log_key(2)}"):
            use()
    assert reads.count < 5000
    assert [finding.key for finding in store.verify().findings] == [key]
    assert not repair(store.backend).ok


class Counting(ReadOnlyBackend):
    """Counts what is read, and gives up where that has no end."""

    count = 0

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        self.count += 1
        assert self.count < 10_000
        return super().read(key, offset=offset, length=length)


@pytest.mark.parametrize("last", [10**17, 10**19])
def test_a_block_that_claims_very_many_entries_is_refused_at_once(tmp_path: Path, last: int) -> None:
    store = Store.create(str(tmp_path / "store"))
    store.publish([memory(1)], message="one")
    good, data = encode_block(1, [store.backend.read(log_key(1))])
    forged = Block(good.digest, 1, last, 0, good.pins)
    key, checkpoint = encode_checkpoint(Checkpoint(sequence=last, tip="a" * 64, history=(forged,)))
    store.backend.put(key, checkpoint)

    with pytest.raises(IntegrityError, match="is not a block of log entries"):
        decode_block(data, forged)
    for missing in (True, False):
        if not missing:
            store.backend.put(history_key(good.digest), data)
        assert {finding.key for finding in store.verify().findings} & {key, history_key(good.digest)}
        repair(store.backend)
    assert len(Store.open(store.url).catalog().rows()) == 1


@pytest.mark.parametrize("size", [2**70, 2**61, 2**50])
@pytest.mark.parametrize("place", [2, 3], ids=["offset", "length"])
def test_a_head_that_places_rows_beyond_any_file_is_damage(tmp_path: Path, place: int, size: int) -> None:
    store = Store.create(str(tmp_path / "store"))
    snapshot = store.pin(store.publish([memory(1)], message="one"), message="pin")
    key = snapshot_key(snapshot.id)
    record = unseal(store.backend.read(key), key)
    record["groups"][0][place] = size
    record["footer"][0] = sum(record["groups"][0][2:4])
    store.backend.put(key, seal(record))

    with pytest.raises(IntegrityError):
        Store.open(store.url).snapshot(snapshot.id).get(memory(1).full_name)
    assert not store.verify().ok
    assert repair(store.backend).ok
    assert Store.open(store.url).snapshot(snapshot.id).get(memory(1).full_name)
