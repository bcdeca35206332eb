"""Each role can do its work with the policies of the documentation, and nothing that belongs to another.

The commands run against a real server under users who have just these policies; what the server cannot judge
(conditions) a small evaluator does, on the requests that were really sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from store import Store
from store.backend import open_backend
from store.checkpoint import BLOCK
from store.doctor import diagnose
from store.doctor.permissions import roles_of
from store.errors import AccessDenied
from store.format import FORMAT_KEY, index_key, lease_key, log_key, pack_key, snapshot_key
from store.gc import collect
from store.keys import write_key_pair
from tests.seaweedfs import S3Server
from tests.store.clocks import Clock, ClockedBackend
from tests.store.policies import Request, allows, as_served, granted, policies_of, recorded, roles, used
from tests.store.samples import codec, memory

pytestmark = pytest.mark.s3
HEX = "a" * 64
LOOK = ("index", "snapshots", "log", "refs", "pins", "claims", "gc", "builds")
ENTRY = log_key(10**6)


@dataclass
class Place:
    """One store in a bucket, and the policies that the documentation gives each role there."""

    server: S3Server
    url: str
    policies: dict[str, list[dict[str, Any]]]
    patch: pytest.MonkeyPatch
    folder: Path

    def become(self, role: str | None) -> None:
        """Go on with the credentials of a new user in that role, or with those that may do everything."""
        environment = (
            self.server.user(*map(as_served, self.policies[role])) if role else self.server.environment()
        )
        for name, value in environment.items():
            self.patch.setenv(name, value)

    def fits(self, *expected: str) -> None:
        """Check that `cellar doctor` recognises the roles of the current user."""
        assert roles_of(open_backend(self.url)) == expected

    def cellar(self, *arguments: object) -> None:
        """Run a command, which must succeed."""
        assert main(["--store", self.url, "--quiet", *map(str, arguments)]) == 0, arguments

    def arn(self, key: str) -> str:
        return f"arn:aws:s3:::{self.url.removeprefix('s3://')}/{key}"

    def check(self, role: str, requests: list[Request], *, unused: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        """Every request is allowed, with its conditions too, and every grant of the role's own was needed."""
        policies = self.policies[role]
        denied = {(request.action, request.resource) for request in requests if not allows(policies, request)}
        assert not denied
        idle = {
            f"{sid} {action} {resource.rpartition(self.url.rpartition('/')[2])[2]}"
            for sid, action, resource in granted(policies) - used(policies, requests)
        }
        assert idle == unused


@pytest.fixture
def place(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Place]:
    """Return an empty place in the bucket; the commands' output is not shown."""
    url = s3_server.url()
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    documents = policies_of(bucket, prefix)
    monkeypatch.chdir(tmp_path)
    made = Place(
        s3_server,
        url,
        {role: [documents[name] for name in names] for role, names in roles().items()},
        monkeypatch,
        tmp_path,
    )
    made.become(None)
    yield made
    capsys.readouterr()


@pytest.fixture
def filled(place: Place) -> Place:
    """Return a place with a store in which every kind of object lies, one pack of it condemned."""
    Store.create(place.url)
    clock = Clock()
    backend = ClockedBackend(open_backend(place.url), clock)
    store = Store(backend)
    needed = codec().version
    refs = store.publish([codec(), *(memory(n, requires=(needed,)) for n in range(4))], message="five")
    snapshot = store.pin(refs, message="pin")
    store.tag("v1", snapshot.id)
    store.move_head("main", snapshot.id, expect=None)
    store.publish([memory(100)], message="soon garbage")
    clock.forward(backend, days=40)
    assert collect(Store(backend), apply=True).condemned.packs == 1
    place.cellar("hold", "add", "run", "v1")
    with store.claim("main", owner="test"):
        pass
    write_key_pair(place.folder / "key")
    place.cellar("snapshot", "sign", "v1", "--key", "key")
    build = store.build("running", owner="test")
    with build.writer("unit") as writer:
        writer.add(memory(200))
        writer.finish()
    return place


def test_a_reader_reads_everything_and_writes_nothing(filled: Place) -> None:
    filled.become("reader")
    filled.fits("reader")

    with recorded(filled.patch) as requests:
        filled.cellar("snapshot", "verify", "head:main", "--key", "key.pub")
        filled.cellar("snapshot", "copy", "v1", "--to", "copy")
        filled.cellar("gc")
        filled.cellar("verify", "--full")
        store = Store.open(filled.url)
        assert store.read(codec().ref) == codec().payload
        assert [hold.name for hold in store.holds()] == ["run"]

    filled.check("reader", requests)
    refused(
        filled, "put", FORMAT_KEY, ENTRY, pack_key(HEX), "refs/tags/x", lease_key("b"), "signatures/x/y.json"
    )
    refused(filled, "delete", FORMAT_KEY, log_key(1), "refs/heads/main", "pins/run.json")
    with pytest.raises(AccessDenied):
        open_backend(f"s3://{filled.server.bucket}/elsewhere").read("x")


def test_a_worker_builds_and_a_committer_commits(place: Place) -> None:
    store = Store.create(place.url)
    store.publish([memory(900)], message="another")
    elements = [codec(), *(memory(n, requires=(codec().version,)) for n in range(4))]
    place.become("worker")
    place.fits("reader", "worker")
    with recorded(place.patch) as requests:
        for renewed in range(2):
            opened = Store.open(place.url)
            build = opened.build("b", owner="worker")
            assert opened.catalog().find(memory(1).provenance["recipe"]) is None
            for number, element in enumerate(elements):
                unit = f"unit/{number}"
                if unit not in build.receipts():
                    with build.writer(unit) as writer:
                        writer.add(element)
                        writer.finish()
            assert len(build.receipts()) == len(elements), renewed
    place.check(
        "worker", requests, unused=of_reader("refs", "signatures", "pins", "claims", "gc", "snapshots")
    )
    refused(place, "put", ENTRY, FORMAT_KEY, index_key(HEX), snapshot_key(HEX), "refs/tags/x", "gc/turn.json")
    refused(place, "delete", pack_key(HEX), lease_key("b"), log_key(1))
    assert len(store.catalog()) == 1

    place.become("committer")
    place.fits("reader", "worker", "committer")
    with recorded(place.patch) as requests:
        store = Store.open(place.url)
        build = store.build("b", owner="committer")
        build.commit(build.receipts(), message="commit")
        for number in range(BLOCK):
            store.publish([memory(100 + number, size=8)], message=str(number))
        place.cellar("snapshot", "pin", "memory/*", "--tag", "v1")
        place.cellar("snapshot", "retire", "v1", "memory/doc/00001", "--head", "main")
        store.move_head("main", store.tags()["v1"], expect=store.head("main"))
        place.cellar("key", "generate", "key")
        place.cellar("snapshot", "sign", "v1", "--key", "key")
        with store.hold("run", store.tags()["v1"], seconds=60, owner="committer") as hold:
            hold.take()
        with store.claim("main", owner="committer") as claim:
            claim.check()
        place.cellar("snapshot", "export", "v1", "x.tar")
        place.cellar("snapshot", "import", "x.tar")
    # Needed only where a collection came in between, which tests of the store arrange.
    unused = {"TakeBack s3:DeleteObject /refs/*", "Replace s3:PutObject /snapshots/*.json"} | of_reader("gc")
    place.check("committer", requests, unused=unused)
    refused(
        place, "delete", pack_key(HEX), log_key(1), index_key(HEX), snapshot_key(HEX), "signatures/x/y.json"
    )
    refused(place, "put", FORMAT_KEY, "gc/turn.json", "elsewhere/x")


def test_the_collector_alone_removes(filled: Place) -> None:
    store = Store.open(filled.url)
    refs = [row.ref for row in store.snapshot("v1").rows() if not row.name.endswith("3")]
    unnamed = store.pin(refs, message="unnamed").id
    filled.cellar("snapshot", "sign", unnamed, "--key", "key")
    for number in range(2 * BLOCK):  # so that one checkpoint, and what it merged, replaces another
        store.publish([memory(300 + number, size=8)], message=str(number))
    filled.become("collector")
    filled.fits("collector")

    with recorded(filled.patch) as requests:
        filled.cellar("gc", "--apply")
        clock = Clock()
        backend = ClockedBackend(open_backend(filled.url), clock)
        clock.forward(backend, days=40)
        for _ in range(3):
            clock.forward(backend, days=8)
            collect(Store(backend), apply=True, retain=timedelta(0))

    assert [item.key for item in store.backend.list(snapshot_key(unnamed))] == []
    assert [item.key for item in store.backend.list("builds/")] == []
    filled.check("collector", requests, unused=of_reader("claims"))
    refused(filled, "delete", log_key(1), "refs/tags/v1", FORMAT_KEY, "pins/run.json", "gc/turn.json")
    refused(filled, "put", pack_key(HEX), snapshot_key(HEX), "refs/heads/main", lease_key("b"))
    filled.become(None)
    assert store.verify(full=True).findings == ()


def test_a_founder_makes_a_store(place: Place) -> None:
    place.become("founder")
    place.patch.setattr("store.doctor.conditions.ROUNDS", 1)
    with recorded(place.patch) as requests:
        place.cellar("init")
        assert diagnose(open_backend(place.url)).roles == ()  # founding is no part of a store's life
    documents = policies_of(place.server.bucket, place.url.rpartition("/")[2])
    probes = [request for request in requests if "/doctor-" in request.resource]  # which role is this?
    place.check("founder", [r for r in requests if r not in probes], unused=of_reader(*LOOK))
    assert {request.resource.rpartition("/")[0] for request in probes} == {
        place.arn("packs"),
        place.arn("gc"),
    }
    assert not any(allows([documents["found"]], request) for request in probes)


@pytest.mark.parametrize(
    ("role", "action", "key", "context", "allowed"),
    [
        ("committer", "s3:PutObject", log_key(7), {"s3:if-none-match": "*"}, True),
        ("committer", "s3:PutObject", log_key(7), {}, False),
        ("committer", "s3:PutObject", log_key(7), {"s3:if-match": "x"}, False),
        ("collector", "s3:PutObject", log_key(7), {"s3:if-none-match": "*"}, True),
        ("collector", "s3:PutObject", log_key(7), {}, False),
        ("worker", "s3:PutObject", log_key(7), {"s3:if-none-match": "*"}, False),
        ("reader", "s3:PutObject", log_key(7), {"s3:if-none-match": "*"}, False),
        ("committer", "s3:PutObject", "refs/tags/v1", {"s3:if-none-match": "*"}, True),
        ("committer", "s3:PutObject", "refs/tags/v1", {"s3:if-match": "x"}, False),
        ("committer", "s3:PutObject", "refs/tags/v1", {}, False),
        ("committer", "s3:PutObject", "refs/heads/main", {"s3:if-match": "x"}, True),
        ("committer", "s3:PutObject", "refs/heads/main", {}, False),
        ("committer", "s3:PutObject", snapshot_key(HEX), {}, False),
        ("committer", "s3:PutObject", snapshot_key(HEX), {"s3:if-match": "x"}, True),
        ("committer", "s3:DeleteObject", pack_key(HEX), {}, False),
        ("committer", "s3:DeleteObject", log_key(7), {}, False),
        ("collector", "s3:DeleteObject", pack_key(HEX), {}, True),
        ("collector", "s3:DeleteObject", log_key(7), {}, False),
        ("collector", "s3:DeleteObject", "refs/tags/v1", {}, False),
        ("founder", "s3:PutObject", FORMAT_KEY, {}, False),
        ("founder", "s3:DeleteObject", FORMAT_KEY, {}, False),
        ("collector", "s3:GetObject", pack_key(HEX), {}, False),
        ("reader", "s3:GetObject", "doctor/x", {}, False),
        ("reader", "s3:GetObject", "../other/x", {}, False),
    ],
)
def test_the_policies_mean_what_they_say(
    role: str, action: str, key: str, context: dict[str, str], allowed: bool
) -> None:
    documents = policies_of("bucket", "here")
    request = Request(action, f"arn:aws:s3:::bucket/here/{key}", context)
    assert allows([documents[name] for name in roles()[role]], request) is allowed


def of_reader(*folders: str) -> set[str]:
    """Return grants to look or read that a role shares with the others and may not need itself."""
    sids = {"packs": "Read", "signatures": "Read"}
    return {f"{sids.get(folder, 'Look')} s3:GetObject /{folder}/*" for folder in folders}


def refused(place: Place, verb: str, *keys: str) -> None:
    """Check that the server itself refuses to write or delete these keys to the current user."""
    backend = open_backend(place.url)
    action: Callable[[str], None] = backend.delete if verb == "delete" else lambda key: backend.put(key, b"x")
    for key in keys:
        with pytest.raises(AccessDenied):
            action(key)
