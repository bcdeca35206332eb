"""The page on updates stays true: its commands run one after the other and print what it shows."""

import json
import random
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from tasks.corpus import shard_of
from tests.e2e.workplace import ROOT, TINY, Workplace

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "updates.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [
    line.removeprefix("$ ")
    for language, block in BLOCKS
    if language == "console"
    for line in block.splitlines()
]
OUTPUTS = [block for language, block in BLOCKS if not language]
TEXTS = {name: text[:800] for name, text in topics.items() if len(text) >= 800}


def shape(text: str) -> str:
    """A text with every figure and id replaced, in single spaces."""
    figures = re.sub(r"\b(?=\w*\d)[0-9a-f]{12,64}\b|-?\d[\d,.]*", "0", text)
    return "\n".join(" ".join(line.split()) for line in figures.splitlines())


def write(path: Path, texts: dict[str, str]) -> None:
    path.write_text("".join(json.dumps({"id": n, "text": t}) + "\n" for n, t in texts.items()))


def names(count: int) -> Iterator[str]:
    """Names that belong to worker shards."""
    return (name for name in (f"new{n}" for n in range(count)) if shard_of(name, 4) % 2)


def edited() -> dict[str, str]:
    """What the page says: one edited, one removed, three added, one of them unreadable and one empty."""
    noise = random.Random(1)
    ours = [name for name in TEXTS if shard_of(name, 4) % 2]
    new, odd, empty = list(names(20))[:3]
    changed = {**TEXTS, ours[0]: f"Changed! {TEXTS[ours[0]]}"}
    del changed[ours[1]]
    changed[new] = "Something entirely new under the sun, said the preacher. " * 8
    changed[odd] = "".join(chr(noise.randint(0x4E00, 0x9FFF)) for _ in range(200))
    changed[empty] = ""
    return changed


def test_the_commands_of_the_page_print_what_it_shows(
    tmp_path: Path, home: dict[str, str], with_server: dict[str, str]
) -> None:
    place = Workplace(tmp_path, {**home, **with_server})
    (tmp_path / "params.yaml").write_text(TINY.read_text().replace("  reader: folder\n  path: texts\n", ""))
    (tmp_path / "news").mkdir()
    for number, day in enumerate(("2026-11-01", "2026-11-02", "2026-11-03")):
        write(tmp_path / "news" / f"{day}.jsonl", dict(list(TEXTS.items())[15 * number : 15 * number + 15]))
    write(tmp_path / "docs.jsonl", TEXTS)
    outputs = iter(OUTPUTS)
    first = ""
    for number, command in enumerate(COMMANDS):
        if number == 1:
            first = str(place.store.head("docs"))
            write(tmp_path / "docs.jsonl", edited())
        done = place.cellar(*shlex.split(command.replace("eb85a58ba6d3", first[:12]))[1:])
        assert done.code == 0, (command, done.err)
        if "--head news" not in command:
            assert shape(done.out) == shape(next(outputs)), command
    assert next(outputs, None) is None
    assert shape(done.out).endswith("documents computed")
