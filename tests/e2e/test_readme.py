"""The README stays true: its commands exist and run, and the demo prints what it shows."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.params import load_params
from store import Store
from tasks.corpus.shards import is_worker_shard, shard_of
from tests.e2e.workplace import ROOT, Workplace, wait_for
from tests.e2e.workplace import ended as ended_of
from tests.seaweedfs import S3Server

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line.removeprefix("$ ").partition("  #")[0].strip()
    for language, block in BLOCKS
    if language == "console"
    for line in block.splitlines()
    if line.startswith("$ ")
]
TEXT = "The quick brown fox jumps over the lazy dog, and nobody knows why it does so again.\n" * 3


def named_commands() -> Iterator[str]:
    """Every command of the table, `cellar corpus build` / `tokenizer` as two."""
    for row in re.findall(r"^\| (`cellar [^|]*) \|", README, re.MULTILINE):
        first, *others = re.findall(r"`([^`]*)`", row)
        words = re.sub(r'".*"', "", first).split()
        yield " ".join(words)
        group = words[:2] if len(words) == 3 else words[:1]
        yield from (" ".join([*group, other]) for other in others)


@pytest.mark.parametrize("command", sorted(set(named_commands())))
def test_every_command_of_the_table_has_help(command: str, tmp_path: Path, home: dict[str, str]) -> None:
    ended = Workplace(tmp_path, home).cellar(*shlex.split(command)[1:], "--help")
    assert ended.code == 0, ended.err
    assert f"Usage: {command}" in ended.out


@pytest.mark.parametrize("target", [command.split()[1] for command in COMMANDS if command.startswith("make")])
def test_the_make_targets_exist(target: str) -> None:
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_one_s_own_text_is_read_as_shown(tmp_path: Path, home: dict[str, str]) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.txt").write_text(TEXT)
    (tmp_path / "documents.jsonl").write_text(json.dumps({"id": "one", "text": TEXT}) + "\n")
    (tmp_path / "fineweb-edu").mkdir()
    table = pa.table({"id": ["one"], "text": [TEXT]})
    pq.write_table(table, tmp_path / "fineweb-edu" / "a.parquet")
    (tmp_path / "novel.txt").write_text(f"Chapter 1\n{TEXT}Chapter 2\n{TEXT}again\n")
    place = Workplace(tmp_path, home)
    shown = [command for command in COMMANDS if command.startswith("cellar corpus build")]
    assert len(shown) == 4
    for command in shown:
        ended = place.cellar(*shlex.split(command)[1:])
        assert ended.code == 0, (command, ended.err)
        assert re.search(r"corpus docs: (1 document|2 documents), ", ended.out), (command, ended.out)


@pytest.mark.slow
def test_a_question_is_answered_as_shown(copy: Workplace) -> None:
    [command] = [command for command in COMMANDS if " ask " in command]
    ended = copy.cellar(*shlex.split(command)[1:])
    assert ended.code == 0, ended.err
    shape = [
        r"^1\. memory/\S+  \w+ match, score ",
        r"^   version  [0-9a-f]{64}$",
        r"^   checksum [0-9a-f]{64}$",
    ]
    for pattern in (*shape, r"^   source   ", r"^   confidence \d\.\d+, lowest \d"):
        assert re.search(pattern, ended.out, re.MULTILINE), pattern
        assert re.search(pattern, README, re.MULTILINE), pattern


@pytest.mark.slow
def test_the_demo_prints_the_lines_that_are_shown(copy: Workplace) -> None:
    ended = copy.cellar("demo")
    assert ended.code == 0, ended.err
    [shown] = [block for _, block in BLOCKS if "wrote build/demo/report.html" in block]
    figure = re.compile(r"\b[0-9a-f]{64}\b|\d[\d,.]*")
    printed = {" ".join(figure.sub("0", line).split()) for line in (ended.err + ended.out).splitlines()}
    missing = {" ".join(figure.sub("0", line).split()) for line in shown.splitlines()} - printed
    # A figure below zero is the only thing that may differ between two corpora.
    assert not {
        line for line in missing if line.replace("-0", "0") not in {p.replace("-0", "0") for p in printed}
    }


@pytest.mark.s3
@pytest.mark.slow
def test_an_empty_bucket_gets_a_scheduled_build_as_shown(
    fresh: Workplace, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    [block] = [block for _, block in BLOCKS if "$ cellar serve" in block]
    export, *commands = [line[2:].partition("  #")[0].strip() for line in block.splitlines()]
    assert commands == ["cellar doctor", "cellar init", "cellar update", "cellar serve"]
    exported = dict(pair.split("=", 1) for pair in shlex.split(export)[1:])
    profile = exported["AWS_PROFILE"]
    (fresh.folder / "config").write_text(
        f"[profile {profile}]\nregion = us-east-1\nendpoint_url = {s3_server.endpoint}\n"
        f"aws_access_key_id = {s3_server.access_key}\naws_secret_access_key = {s3_server.secret_key}\n"
    )
    shutil.copy(ROOT / "prefect.yaml", fresh.folder)
    environment = exported | {
        "AWS_CONFIG_FILE": str(fresh.folder / "config"),
        "CELLAR_STORE": f"{s3_server.url()}/cellar",
        "CELLAR_SERVE_PORT": "0",
    }
    for command in ("doctor", "init", "update"):
        ended = fresh.cellar(command, **environment)
        assert ended.code == 0, (command, ended.err)
    head, _, snapshot = ended.out.splitlines()[-2].removeprefix("head ").partition(": new -> ")
    shards = load_params(fresh.folder / "params.yaml").corpus.shards
    name = next(name for name in map(str, count()) if is_worker_shard(shard_of(name, shards)))
    (fresh.folder / "texts" / f"{name}.txt").write_text(TEXT * 3)

    for variable, value in s3_server.environment().items():
        monkeypatch.setenv(variable, value)
    store = Store.open(environment["CELLAR_STORE"])
    serving = fresh.start("serve", "--now", "update", **environment)
    try:
        completed = ("runs", "--flow", "update", "--state", "completed")
        wait_for(lambda: store.head(head) != snapshot, serving)
        wait_for(lambda: "Completed" in fresh.cellar(*completed, **environment).out, serving)
    finally:
        serving.terminate()
        served = ended_of(serving)
    assert served.code in (0, 130), served.err
    [run] = json.loads(fresh.cellar(*completed, "--json", **environment).out)
    assert run["snapshot"] not in (None, snapshot)
    assert json.loads(fresh.cellar("head", "--json", **environment).out) == {head: run["snapshot"]}
