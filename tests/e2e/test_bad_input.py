"""What goes wrong ends in one sentence and a documented code, and changes nothing in the store."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flows.cli import main
from store import Element, Row, Store
from store.format import pack_key, seal, unseal
from tasks.corpus import element_split
from tests.e2e.workplace import FOREIGN, TRAINED, Ended, Workplace, mounted
from tests.seaweedfs import S3Server

Here = Callable[..., Ended]


@pytest.fixture
def here(copy: Workplace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Run the command line in this process, for what ends before any flow starts."""
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(copy.folder)
    monkeypatch.setenv("CELLAR_STORE", copy.url)
    monkeypatch.setenv("CELLAR_PINS", str(copy.folder / "build/demo/pins"))

    def run(*arguments: str, **environment: str) -> Ended:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return Ended(main(list(arguments)), *capsys.readouterr())

    return run


@pytest.fixture
def unchanged(copy: Workplace) -> Iterator[None]:
    """Checks that the copy's store shows at the end what it showed at the beginning, intact."""
    before = copy.commits, copy.store.heads(), copy.store.tags()
    yield
    assert (copy.commits, copy.store.heads(), copy.store.tags()) == before
    assert copy.store.verify().ok


def assert_ends(end: Ended, code: int, *phrases: str) -> None:
    """One sentence on stderr, nothing else there, and nothing on stdout."""
    assert (end.code, end.out) == (code, ""), end
    assert end.err.startswith("cellar: ")
    assert end.err.count("\n") == 1, end.err
    for phrase in phrases:
        assert phrase in end.err


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    ("arguments", "code", "phrase"),
    [
        (["codec", "train", "--set", "codec.stepz=1"], 2, "did you mean codec.steps"),
        (["codec", "train", "--params", "typo.yaml"], 2, "there is no parameter memory.losss"),
        (["codec", "train", "--params", "absent.yaml"], 2, "absent.yaml does not exist"),
        (["demo", "--set", "tokenizer.vocab_size=65537"], 2, "above 65536"),
        (["ask", "words", "--snapshot", "v9"], 4, "v9"),
        (["snapshot", "pin", "memory/absent"], 4, "memory/absent"),
    ],
)
def test_what_does_not_exist_is_named(here: Here, arguments: list[str], code: int, phrase: str) -> None:
    Path("typo.yaml").write_text("memory: {losss: 2}\n", encoding="utf-8")

    assert_ends(here(*arguments), code, phrase)


@pytest.mark.usefixtures("unchanged")
def test_a_stage_without_the_one_before_names_its_command(here: Here, copy: Workplace) -> None:
    (copy.folder / "build/demo/pins/codec.json").unlink()

    assert_ends(here("memory", "build"), 2, "codec.json is missing: run `cellar codec train` first")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("setting", ["CELLAR_WORK_DIR", "CELLAR_PINS"])
def test_a_file_where_a_folder_belongs_is_named(here: Here, setting: str) -> None:
    Path("taken").write_text("")

    end = here("codec", "train", **{setting: "taken"})

    assert_ends(end, 3, f"{setting} is 'taken'")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("command", [["eval", "run"], ["demo"]])
def test_a_file_where_results_belong_is_named(here: Here, command: list[str]) -> None:
    Path("taken").write_text("")

    assert_ends(here(*command, "--out", "taken"), 3, "--out is 'taken'")


def test_a_store_of_another_format_is_refused(here: Here, copy: Workplace) -> None:
    file = copy.path / "format.json"
    file.write_bytes(seal({**unseal(file.read_bytes(), "format.json"), "format": 2}))

    assert_ends(here("codec", "train"), 3, "has format 2")


def test_a_snapshot_without_a_requirement_is_refused(copy: Workplace, here: Here) -> None:
    lost = "ab" * 32
    orphan = Element("memory", "orphan", b"", media="application/octet-stream", requires=(lost,))
    copy.store.publish([orphan], message="Publish an element that requires what nobody published")
    before = copy.commits

    assert_ends(here("snapshot", "pin", "memory/orphan"), 2, "memory/orphan requires version abababababab")

    assert copy.commits == before


def test_an_endpoint_that_does_not_answer_is_reported_soon(here: Here, s3_server: S3Server) -> None:
    began = time.monotonic()

    end = here(
        "codec",
        "train",
        CELLAR_STORE=s3_server.url(),
        **{**s3_server.environment(), "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"},
    )

    assert_ends(end, 6, "127.0.0.1:9 does not answer", "check the endpoint")
    assert time.monotonic() - began < 20


@pytest.mark.s3
@pytest.mark.parametrize(
    ("url", "environment", "phrase"),
    [
        ("s3://cellar-test/x", {"AWS_SECRET_ACCESS_KEY": "not-the-secret"}, "rejects the credentials"),
        ("s3://cellar-test/x", {"AWS_ACCESS_KEY_ID": "NOBODY"}, "rejects the credentials"),
        ("s3://cellar-absent/x", {}, "that bucket does not exist"),
    ],
)
def test_a_bucket_that_cannot_be_opened_is_a_matter_of_configuration(
    here: Here, s3_server: S3Server, url: str, environment: dict[str, str], phrase: str
) -> None:
    end = here("codec", "train", CELLAR_STORE=url, **{**s3_server.environment(), **environment})

    assert_ends(end, 3, phrase)
    assert "not-the-secret" not in end.err


@pytest.mark.s3
def test_a_bucket_that_may_only_be_read_is_not_written(
    here: Here, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = s3_server.url()
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    Store.create(url)

    end = here("corpus", "build", "--store", url, **s3_server.environment(reader=True))

    assert_ends(end, 6, "access is denied")
    assert list(Store.open(url).log()) == []


def attempts_of_the_newest_task() -> int:
    """How often Prefect started the task that was asked for last."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import TaskRunSort

    with get_client(sync_client=True) as client:
        [task] = client.read_task_runs(sort=TaskRunSort.EXPECTED_START_TIME_DESC, limit=1)
    assert task.name.startswith("train codec"), task.name
    return task.run_count


@pytest.mark.slow
def test_a_folder_that_may_only_be_read_keeps_what_it_has(
    copy: Workplace, here: Here, with_server: dict[str, str]
) -> None:
    before = copy.commits
    with mounted(copy.path, "--bind", str(copy.path)):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(copy.path)], check=True)
        end = copy.cellar("codec", "train", "--set", "codec.steps=5", "--quiet", **with_server)
        found = here("log", "--json")

    assert_ends(end, 6, "is read-only; make it writable or use another store")
    assert attempts_of_the_newest_task() == 1, "nobody tries again what stays as it is"
    assert len(json.loads(found.out)) == len(before)
    assert copy.commits == before


@pytest.mark.slow
def test_a_build_on_a_full_disk_continues_when_there_is_room(
    finished: Workplace, copy: Workplace, with_server: dict[str, str]
) -> None:
    copy.rewind(TRAINED)
    disk = copy.folder / "disk"
    disk.mkdir()
    store = f"file:{disk}/store"
    with mounted(disk, "-t", "tmpfs", "-o", "size=16m", "tmpfs"):
        shutil.copytree(copy.path, disk / "store")
        (disk / "other files").write_bytes(b"\0" * (shutil.disk_usage(disk).free - 100_000))
        end = copy.cellar("memory", "build", "--store", store, "--quiet", **with_server)

        assert_ends(end, 6, "no space left", "free some and run again")
        assert len(list(Store.open(store).log())) == TRAINED
        assert Store.open(store).verify(full=True).ok

        (disk / "other files").unlink()
        again = copy.cellar("memory", "build", "--store", store, "--quiet", **with_server)

        assert (again.code, again.err) == (0, "")
        assert copy.pin("memory") == finished.pin("memory")
        assert Store.open(store).verify(full=True).ok


@pytest.mark.usefixtures("unchanged")
def test_an_empty_corpus_is_refused(here: Here) -> None:
    Path("nothing").mkdir()

    end = here("corpus", "build", "--set", "corpus.path=nothing")

    assert_ends(end, 2, "no file below nothing matches **/*.txt")


@pytest.mark.slow
@pytest.mark.usefixtures("unchanged")
def test_memories_that_all_miss_the_thresholds_end_with_the_best_figures(
    copy: Workplace, with_server: dict[str, str]
) -> None:
    strict = ["--set", "memory.token_recall=1", "--set", "memory.loss=0", "--quiet"]

    end = copy.cellar("memory", "build", *strict, **with_server)

    assert_ends(end, 8, "reached the thresholds of publication, the best with a token recall of 0.")


@pytest.mark.slow
def test_memories_that_are_too_few_for_the_core_end_the_chain_before_the_indexes(
    copy: Workplace, with_server: dict[str, str]
) -> None:
    best = min(row.facts["loss"] for row in copy.store.catalog().rows("memory"))
    before = copy.commits

    end = copy.cellar("demo", "--set", f"memory.loss={best}", "--quiet", **with_server)

    assert_ends(end, 2, "train-split memories, training a core needs 2")
    made = copy.commits[len(before) :]
    assert [commit.action for commit in made] == ["publish", "pin"]
    assert copy.store.snapshot(made[1].snapshot).kinds == {"codec": 1, "memory": 1, "tokenizer": 1}


def flip_a_bit(workplace: Workplace, row: Row) -> None:
    """Damage the payload of an element where it lies."""
    pack = workplace.path / pack_key(row.pack)
    data = bytearray(pack.read_bytes())
    data[row.offset + row.length // 2] ^= 1
    pack.chmod(0o644)
    pack.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["index", "build", "--set", "retrieval.readout_tile=8"],
        ["eval", "run", "--set", "evaluation.target_tokens=7"],
    ],
    ids=["index build", "eval run"],
)
def test_a_damaged_memory_is_named_and_not_used(
    copy: Workplace, with_server: dict[str, str], arguments: list[str]
) -> None:
    damaged = next(row for row in copy.store.catalog().rows("memory") if element_split(row.name) == "test")
    flip_a_bit(copy, damaged)
    before = copy.commits

    end = copy.cellar(*arguments, "--quiet", **with_server)

    assert_ends(end, 5, f"the payload of {damaged.name}@{damaged.version[:12]}", "is damaged")
    assert copy.commits == before
    assert not copy.store.verify(full=True).ok


def test_a_damaged_index_does_not_answer(copy: Workplace, here: Here) -> None:
    [readout] = [row for row in copy.store.catalog().rows("index") if row.name == "index/main/readout"]
    flip_a_bit(copy, readout)

    assert_ends(here("ask", "words"), 5, "index/main/readout", "is damaged")
