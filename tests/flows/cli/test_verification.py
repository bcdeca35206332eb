"""`cellar verify` says what is damaged and what that touches, and stops and goes on as asked."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from store import Store
from store.backend.local import LocalBackend
from store.errors import IntegrityError
from store.format import pack_key
from tests.store.samples import memory

Cellar = Callable[..., tuple[int, str, str]]
PACKS = 5


@pytest.fixture
def store(workplace: Path) -> Store:
    """Return the default store of the folder, with a few packs, a snapshot and a tag."""
    store = Store.create("file:build/store")
    refs = [store.publish([memory(number)], message=str(number))[0] for number in range(PACKS)]
    store.tag("v1", store.pin(refs[1:], message="pin").id)
    return store


def damage(store: Store, number: int) -> None:
    row = store.catalog().rows()[number]
    path = LocalBackend(Path("build/store").absolute()).root / pack_key(row.pack)
    data = bytearray(path.read_bytes())
    data[row.offset] ^= 1
    path.write_bytes(data)


def test_an_intact_store_is_said_to_be_so(cellar: Cellar, store: Store) -> None:
    code, out, _ = cellar("verify")
    assert code == 0
    assert "6 commits, 5 elements, 1 snapshots" in out
    assert "checked structure and sizes; --full reads every byte" in out

    code, out, _ = cellar("verify", "--full")
    assert code == 0
    assert "read 5 packs" in out
    assert "the pass over all packs is complete" in out

    code, out, _ = cellar("verify", "--sample", "0.2", "--json")
    assert code == 0
    report = json.loads(out)
    assert (report["sample"], report["ok"], report["complete"]) == (0.2, True, True)
    assert report["url"] == store.url
    assert 0 < report["packs_read"] == report["packs_chosen"] < PACKS


def test_damage_is_named_with_what_it_touches(cellar: Cellar, store: Store) -> None:
    damage(store, 1)
    row = store.catalog().rows()[1]

    code, out, err = cellar("verify", "--full")

    assert code == 5
    assert f"{pack_key(row.pack)} is damaged: 1 of 1 payloads" in out
    assert f"  element {row.ref}\n  snapshot {store.tags()['v1']}\n  name tag:v1\n" in out
    assert "1 finding" in err


@pytest.mark.parametrize("kind", ["tags", "heads"])
def test_a_damaged_name_is_to_be_made_again_and_hides_none(cellar: Cellar, store: Store, kind: str) -> None:
    snapshot = store.tags()["v1"]
    store.move_head("main", snapshot, expect=None)
    name = {"tags": "v1", "heads": "main"}[kind]
    path = Path("build/store/refs") / kind / name
    path.write_bytes(path.read_bytes()[:-9])
    way_out = f"make the name again after deleting refs/{kind}/{name}"

    code, out, err = cellar("verify")
    assert (code, way_out in out, "restore" in out) == (5, True, False)
    assert "a repair makes no names again" in err
    assert way_out in cellar("snapshot", "show", name)[2]

    others = {"tags": "head:main", "heads": "v1"}[kind]
    code, out, err = cellar("snapshot", "ls", "--json")
    assert (code, way_out in err) == (0, True)
    assert json.loads(out)[0]["names"] == [others]
    for command in ("tag", "head"):
        assert cellar(command)[0] == 0
    with pytest.raises(IntegrityError):  # who has to know all of them is not served
        getattr(store, kind)()

    path.unlink()
    again = ("tag", "v1", snapshot) if kind == "tags" else ("head", "move", "main", snapshot)
    assert cellar(*again)[0] == 0
    assert cellar("verify")[0] == 0


@pytest.mark.parametrize("name", ["x.tar", "x"])
def test_a_damaged_export_is_to_be_made_again(cellar: Cellar, store: Store, name: str) -> None:
    assert cellar("snapshot", "export", "v1", name)[0] == 0
    pack = min(store.snapshot("v1").packs())
    path = Path(name) if name == "x.tar" else Path(name) / pack_key(pack)
    data = store.backend.read(pack_key(pack))
    path.write_bytes(path.read_bytes().replace(data, data[:-1] + bytes([data[-1] ^ 1])))

    code, _, err = cellar("verify", "--full", "--store", name)

    assert code == 5
    assert "export or copy the snapshot again" in err
    assert "--repair" not in err


def test_a_pass_is_continued_where_it_stopped(cellar: Cellar, store: Store) -> None:
    code, out, _ = cellar("verify", "--full", "--max-seconds", "0.000001")
    assert code == 0
    assert "1 of 5 so far" in out
    assert "`cellar verify --resume` continues it" in out
    [kept] = Path("build/work/verify").iterdir()

    code, out, _ = cellar("verify", "--resume")
    assert code == 0
    assert "read 4 packs" in out
    assert "5 of 5 so far" in out
    assert "the pass over all packs is complete" in out
    assert not kept.exists()

    assert "5 of 5 so far" in cellar("verify", "--resume", "--full")[1]  # a new pass: no other was begun


def test_a_kept_place_that_does_not_fit_is_refused(cellar: Cellar, store: Store) -> None:
    cellar("verify", "--full", "--max-seconds", "0.000001")
    assert cellar("verify", "--resume", "--sample", "0.5")[0] == 2
    [kept] = Path("build/work/verify").iterdir()
    kept.write_text("{}")

    code, _, err = cellar("verify", "--resume")

    assert code == 2
    assert f"{kept} says nothing useful" in err


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_pass_keeps_its_place(
    cellar: Cellar, store: Store, monkeypatch: pytest.MonkeyPatch, kill: signal.Signals
) -> None:
    monkeypatch.setattr("store.verify.packs._THREADS", 1)
    third = sorted(row.pack for row in store.catalog().rows())[2]
    read = LocalBackend.read

    def interrupted(self: LocalBackend, key: str, **options: int) -> bytes:
        if key == pack_key(third):
            os.kill(os.getpid(), kill)
        return read(self, key, **options)

    with monkeypatch.context() as patch:
        patch.setattr(LocalBackend, "read", interrupted)
        code, out, err = cellar("verify", "--full")
    assert (code, out) == (130, "")
    assert "`cellar verify --resume` continues the pass over its packs" in err

    code, out, _ = cellar("verify", "--resume")
    assert code == 0
    assert "5 of 5 so far" in out


def test_a_store_that_cannot_even_be_opened_is_verified(cellar: Cellar, store: Store) -> None:
    Path("build/store/format.json").write_bytes(b"{}")

    code, out, _ = cellar("verify")

    assert code == 5
    assert "format.json is damaged" in out
    assert cellar("verify", "--store", "elsewhere")[0] == 3


def test_a_repair_says_what_it_did_and_what_is_left(cellar: Cellar, store: Store, tmp_path: Path) -> None:
    shutil.copytree("build/store", tmp_path / "copy")
    damage(store, 1)
    for path in Path("build/store/index").iterdir():
        path.unlink()

    code, out, err = cellar("verify", "--repair", "--full")
    assert code == 5
    assert out.count("repaired index/") == PACKS
    assert "is damaged: 1 of 1 payloads" in out
    assert "1 finding in file:" in err
    assert "could not be repaired" in err

    code, out, _ = cellar("verify", "--repair", "--full", "--from", str(tmp_path / "copy"), "--json")
    assert code == 0
    [repaired] = json.loads(out)["repaired"]
    assert repaired["key"] == pack_key(store.catalog().rows()[1].pack)
    assert str(tmp_path / "copy") in repaired["how"]

    assert "nothing was repaired" in cellar("verify", "--repair")[1]


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--from", "elsewhere"], 2, "add --repair"),
        (["--repair", "--resume"], 2, "leave out --sample, --max-seconds and --resume"),
        (["--repair", "--from", "elsewhere"], 3, "there is no store at"),
        (["--full", "--sample", "0.5"], 2, "leave out one of the two"),
        (["--seed", "3"], 2, "add --sample"),
        (["--max-seconds", "5"], 2, "add --full, --sample or --resume"),
        (["--resume"], 2, "add --full or --sample to start one"),
        (["--resume", "--store", "elsewhere"], 3, "there is no store at"),
        (["--sample", "2"], 2, "see `cellar verify --help`"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    cellar: Cellar, store: Store, options: list[str], code: int, sentence: str
) -> None:
    ended, _, err = cellar("verify", *options)

    assert ended == code
    assert sentence in err


@pytest.mark.usefixtures("store")
def test_whoever_has_nowhere_to_write_can_verify(
    cellar: Cellar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file, not a folder")
    monkeypatch.setenv("CELLAR_WORK_DIR", str(taken))

    code, out, _ = cellar("verify", "--full", "--max-seconds", "0.000001")

    assert code == 0
    assert "1 of 5 so far" in out
    assert "set CELLAR_WORK_DIR" in caplog.text
