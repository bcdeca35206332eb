"""The commands that move, sign and verify snapshots, through the real command line and real stores."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from store import Element, Store
from store.format import pack_key
from tests.e2e.workplace import PROGRAM, ROOT
from tests.store.samples import codec, memory
from tests.store.test_tar import tar_of

Cellar = Callable[..., tuple[int, str, str]]


@pytest.fixture
def snapshot(workplace: Path) -> str:
    """Return the id of a tagged snapshot in the default store."""
    store = Store.create(str(workplace / "build" / "store"))
    needed = codec().version
    refs = store.publish([codec(), *(memory(n, requires=(needed,)) for n in range(5))], message="six")
    identity = store.pin(refs, message="pin").id
    store.tag("v1", identity)
    return identity


def as_json(result: tuple[int, str, str]) -> dict[str, object]:
    code, out, err = result
    assert code == 0, err
    return json.loads(out)


def failed(result: tuple[int, str, str]) -> tuple[int, str]:
    code, out, err = result
    assert out == ""
    assert err.startswith("cellar: ")
    assert err.count("\n") == 1
    return code, err


def test_the_commands_of_the_documentation_run(cellar: Cellar, snapshot: str, workplace: Path) -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    sections = text.partition("\n## Moving snapshots\n")[2].partition("\n## Roles\n")[0]
    shown = [line[2:].partition("  #")[0] for line in sections.splitlines() if line.startswith("$ cellar ")]
    assert len(shown) == 7
    for command in shown:
        arguments = shlex.split(command.replace("s3://other-bucket/cellar", str(workplace / "other")))[1:]
        code, _, err = cellar(*arguments)
        assert code == 0, (command, err)
    assert Store.open(str(workplace / "other")).tags() == {"v1": snapshot}
    assert Store.open("build/store").tags() == {"v1": snapshot, "release-1": snapshot}


def test_a_snapshot_is_copied_once(cellar: Cellar, snapshot: str) -> None:
    first = as_json(cellar("snapshot", "copy", "v1", "--to", "other", "--tag", "v1", "--json"))
    again = as_json(cellar("snapshot", "copy", snapshot[:10], "--to", "other", "--json"))

    assert (first["snapshot"], first["new"], first["tag"]) == (snapshot, 6, "v1")
    assert (again["new"], again["bytes"]) == (0, 0)
    assert as_json(cellar("--store", "other", "tag", "--json")) == {"v1": snapshot}
    assert "copied 6 elements" in cellar("snapshot", "copy", "v1", "--to", "third")[1]
    assert "copied 1 element as" in cellar("snapshot", "copy", "v1", "--to", "third", "--kind", "codec")[1]


def test_a_copy_that_no_head_names_yet_says_which_command_does_that(
    cellar: Cellar, snapshot: str, workplace: Path
) -> None:
    store = Store.open("build/store")
    store.move_head("docs", snapshot, expect=None)
    assert "not name it" not in cellar("snapshot", "copy", "v1", "--to", "other")[1]
    assert "not name it" not in cellar("snapshot", "copy", "head:docs", "--to", "third", "--tag", "v1")[1]
    assert (
        "does not name it"
        not in cellar("snapshot", "copy", "head:docs", "--to", "part", "--kind", "codec")[1]
    )
    told = cellar("snapshot", "copy", "head:docs", "--to", "an other")[1].splitlines()[-1]
    assert told.startswith("head docs does not name it there yet: cellar --store ")
    code, _, err = cellar(*shlex.split(told.partition("cellar ")[2]))
    assert code == 0, err
    assert Store.open("an other").head("docs") == snapshot
    assert "not name it" not in cellar("snapshot", "copy", "head:docs", "--to", "an other")[1]


def test_what_was_attached_says_after_an_import_at_which_head_it_belongs(
    cellar: Cellar, snapshot: str
) -> None:
    store = Store.open("build/store")
    [stack] = store.publish([Element("stack", "reader", b"{}", media="application/json")], message="stack")
    [odd] = store.publish([Element("stack", "a/b", b"{}", media="application/json")], message="stack")
    for name, ref in (("one", stack), ("two", odd)):
        cellar("snapshot", "export", store.pin([ref], message=name).id, f"{name}.tar")
    told = cellar("--store", "other", "snapshot", "import", "one.tar")[1].splitlines()[-1]
    code, _, err = cellar(*shlex.split(told.partition("cellar ")[2]))
    assert code == 0, err
    assert Store.open("other").head("reader") is not None
    assert "not name it" not in cellar("--store", "other", "snapshot", "import", "two.tar")[1]


def test_what_was_copied_or_imported_says_by_whom(cellar: Cellar, snapshot: str) -> None:
    cellar("snapshot", "copy", "v1", "--to", "copied")
    cellar("snapshot", "export", "v1", "x.tar")
    cellar("--store", "imported", "snapshot", "import", "x.tar")

    for name, command in (("copied", "snapshot copy"), ("imported", "snapshot import")):
        runs = [commit.run for commit in Store.open(name).log()]
        assert [run["command"] for run in runs] == [command, command]
        assert all(run["host"] and run["user"] for run in runs)
        assert (
            f"by       command {command}, host " in cellar("--store", name, "snapshot", "show", snapshot)[1]
        )


def test_kinds_and_names_choose(cellar: Cellar, snapshot: str) -> None:
    some = ["--kind", "memory", "--kind", "codec", "--name", "*/0000[12]", "--name", "codec/*"]
    assert as_json(cellar("snapshot", "copy", "v1", "--to", "a", *some, "--json"))["elements"] == 3
    assert (
        as_json(cellar("snapshot", "export", "v1", "b.tar", "--name", "*/00001", "--json"))["elements"] == 2
    )

    alone = ["--name", "*/00001", "--no-requirements"]
    assert failed(cellar("snapshot", "copy", "v1", "--to", "c", *alone))[0] == 2
    assert failed(cellar("snapshot", "export", "v1", "c.tar", *alone))[0] == 2
    assert failed(cellar("snapshot", "copy", "v1", "--to", "c", "--kind", "skill"))[0] == 4
    assert failed(cellar("snapshot", "copy", "v9", "--to", "c"))[0] == 4
    assert not any(Path(name).exists() for name in ("c", "c.tar"))


@pytest.mark.parametrize("name", ["x.tar", "x"])
def test_an_export_is_used_like_a_store_and_imported(cellar: Cellar, snapshot: str, name: str) -> None:
    exported = as_json(cellar("snapshot", "export", "v1", name, "--tag", "release", "--json"))
    assert exported["snapshot"] == snapshot

    assert as_json(cellar("--store", name, "snapshot", "show", "release", "--json"))["count"] == 6
    assert as_json(cellar("--store", name, "verify", "--full", "--json"))["ok"] is True
    assert as_json(cellar("--store", name, "snapshot", "verify", "release", "--json"))["ok"] is True
    assert cellar("--store", name, "log")[0] == 0
    code, err = failed(cellar("--store", name, "tag", "v2", snapshot))
    assert (code, "is an export; copy it into a store" in err) == (6, True)
    code, out, _ = cellar("--store", "other", "snapshot", "import", name, "--tag", "mine")
    assert (code, "imported 6 elements" in out, "mine now names it" in out) == (0, True, True)
    assert as_json(cellar("--store", "other", "tag", "--json")) == {"mine": snapshot}
    assert "it is called release in the export" in cellar("--store", "other", "snapshot", "import", name)[1]
    assert failed(cellar("snapshot", "export", "v1", name))[0] == 2


def test_a_bad_archive_leaves_no_trace(cellar: Cellar, snapshot: str, workplace: Path) -> None:
    cellar("snapshot", "export", "v1", "x.tar")
    Path("cut.tar").write_bytes(Path("x.tar").read_bytes()[:-700])
    Path("other.tar").write_bytes(tar_of({"readme": b"hello"}))
    Path("x.tar.gz").write_bytes(b"\x1f\x8b\x08rest")
    before = sorted(path.name for path in workplace.iterdir())

    for name, code, phrase in [
        ("cut.tar", 5, "it was cut short"),
        ("other.tar", 2, "is no export"),
        ("x.tar.gz", 2, "unpack it with `gunzip` first"),
        ("build/store", 2, "is a store, not an export"),
        ("none.tar", 2, "there is no file"),
        ("none", 2, "there is no folder"),
        ("", 2, "the name of the export is empty"),
    ]:
        found, err = failed(cellar("--store", "fresh", "snapshot", "import", name))
        assert (found, phrase in err) == (code, True), err

    assert sorted(path.name for path in workplace.iterdir()) == before


@pytest.mark.parametrize("name", ["", ".", "/", "x" * 300, "x" * 300 + ".tar"])
def test_what_names_nothing_is_not_exported_to(cellar: Cellar, snapshot: str, name: str) -> None:
    code, err = failed(cellar("snapshot", "export", "v1", name))
    said = ("is no name for an export", "is too long a name", "DESTINATION is empty")
    assert (code, any(phrase in err for phrase in said)) == (2, True), err


@pytest.mark.parametrize("command", [["snapshot", "copy", "v1", "--to"], ["verify", "--repair", "--from"]])
def test_other_stores_have_addresses_too(cellar: Cellar, snapshot: str, command: list[str]) -> None:
    code, err = failed(cellar(*command, "file:%00"))
    assert (code, "holds a zero byte" in err) == (3, True), err


def test_a_snapshot_is_signed_and_verified(cellar: Cellar, snapshot: str, workplace: Path) -> None:
    made = as_json(cellar("key", "generate", "key", "--json"))
    cellar("key", "generate", "other")
    signed = as_json(cellar("snapshot", "sign", "v1", "--key", "key", "--json"))
    assert signed == {"snapshot": snapshot, "key": made["key"]}

    report = as_json(cellar("snapshot", "verify", "v1", "--key", "key.pub", "--json"))
    assert (report["ok"], report["full"], report["signers"]) == (True, True, [made["key"]])
    code, out, _ = cellar("snapshot", "verify", "v1", "--quick")
    assert (code, "payloads not read" in out, f"signed by {made['key']}" in out) == (0, True, True)

    cellar("snapshot", "export", "v1", "x.tar")
    assert cellar("--store", "new", "snapshot", "import", "x.tar", "--key", "key.pub")[0] == 0
    assert cellar("--store", "new", "snapshot", "verify", snapshot, "--key", "key.pub")[0] == 0
    for command in (["snapshot", "verify", "v1"], ["--store", "none", "snapshot", "import", "x.tar"]):
        code, _, err = cellar(*command, "--key", "other.pub")
        assert (code, "is not signed by key" in err) == (5, True)
    assert not Path("none").exists()

    row = Store.open("build/store").snapshot("v1").rows("memory")[0]
    pack = workplace / "build" / "store" / pack_key(row.pack)
    data = bytearray(pack.read_bytes())
    data[row.offset] ^= 1
    pack.write_bytes(data)
    code, out, err = cellar("snapshot", "verify", "v1", "--key", "key.pub")
    assert (code, pack.name in out, "cannot be trusted" in err) == (5, True, True)


def test_an_encrypted_key_is_opened_by_variable_or_prompt(
    cellar: Cellar, snapshot: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLAR_KEY_PASSPHRASE", "open sesame")
    assert as_json(cellar("key", "generate", "key", "--json"))["encrypted"] is True
    assert cellar("snapshot", "sign", "v1", "--key", "key")[0] == 0
    monkeypatch.setenv("CELLAR_KEY_PASSPHRASE", "open barley")
    code, err = failed(cellar("snapshot", "sign", "v1", "--key", "key"))
    assert (code, "barley" in err) == (2, False)
    monkeypatch.delenv("CELLAR_KEY_PASSPHRASE")
    command = [*PROGRAM, "snapshot", "sign", "v1", "--key", "key"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    alone = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False
    )
    assert (alone.returncode, "nobody is there to ask; set CELLAR_KEY_PASSPHRASE" in alone.stderr) == (
        3,
        True,
    )

    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,  # without a terminal of its own, the prompt goes to stderr
    ) as asked:
        assert asked.stderr is not None
        try:
            prompt = asked.stderr.read(len("Passphrase of key: "))
            os.write(ours, b"open sesame\n")  # not before: what was typed ahead is thrown away
            out, err = asked.communicate(timeout=60)
        finally:
            asked.kill()
            os.close(ours)
            os.close(theirs)
    assert (asked.returncode, "signed snapshot" in out) == (0, True), err
    assert prompt == "Passphrase of key: "
    assert "sesame" not in out + err
