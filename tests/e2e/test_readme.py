"""The README stays true: its commands exist and run, and the demo prints what it shows."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.cli import main
from tests.e2e.workplace import ROOT, Workplace

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
def test_every_command_of_the_table_has_help(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "CRITICAL")  # so that the command sets none for this process
    code = main([*shlex.split(command)[1:], "--help"])
    out, err = capsys.readouterr()
    assert code == 0, err
    text = " ".join(re.sub("[│╭╮╰╯─]", " ", out).split())
    words = command.split()
    named = max(
        n for n in range(1, len(words) + 1) if f"{text} ".startswith(f"Usage: {' '.join(words[:n])} ")
    )
    # What follows the command is one of an argument's choices, an option, or stands for a value.
    choices = {word for listed in re.findall(r"\[choices: ([^]]*)]", text) for word in listed.split(", ")}
    options = set(re.findall(r" (--[a-z-]+) ", text))
    assert {word for word in words[named:] if not word.isupper()} <= choices | options


@pytest.mark.parametrize("target", [command.split()[1] for command in COMMANDS if command.startswith("make")])
def test_the_make_targets_exist(target: str) -> None:
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_one_s_own_text_is_read_as_shown(
    tmp_path: Path, home: dict[str, str], with_server: dict[str, str]
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.txt").write_text(TEXT)
    (tmp_path / "documents.jsonl").write_text(json.dumps({"id": "one", "text": TEXT}) + "\n")
    (tmp_path / "fineweb-edu").mkdir()
    table = pa.table({"id": ["one"], "text": [TEXT]})
    pq.write_table(table, tmp_path / "fineweb-edu" / "a.parquet")
    (tmp_path / "novel.txt").write_text(f"Chapter 1\n{TEXT}Chapter 2\n{TEXT}again\n")
    place = Workplace(tmp_path, {**home, **with_server})
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
def test_the_demo_prints_the_lines_that_are_shown(copy: Workplace, with_server: dict[str, str]) -> None:
    ended = copy.cellar("demo", **with_server)
    assert ended.code == 0, ended.err
    [shown] = [block for _, block in BLOCKS if "wrote build/demo/report.html" in block]
    figure = re.compile(r"\b[0-9a-f]{64}\b|\d[\d,.]*")
    printed = {" ".join(figure.sub("0", line).split()) for line in (ended.err + ended.out).splitlines()}
    missing = {" ".join(figure.sub("0", line).split()) for line in shown.splitlines()} - printed
    # A figure below zero is the only thing that may differ between two corpora.
    assert not {
        line for line in missing if line.replace("-0", "0") not in {p.replace("-0", "0") for p in printed}
    }
