"""`cellar eval run rate` measures the pinned corpus in cells of every kind, and finds it again."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from store import Store

Cellar = Callable[..., tuple[int, str, str]]
SMALL = """
corpus: {reader: folder, path: texts, shards: 4}
tokenizer: {vocab_size: 320}
codec:
  architecture: {block_tokens: 8, cell_width: 96, slot_width: 32, mixing_width: 8, channel_width: 64}
  steps: 20
  candidates: 64
memory: {tile_blocks: 16, max_steps: 4, patience: 2}
rate: {widths: [8, 96], dtypes: [bfloat16, int8]}
"""


@pytest.fixture
def corpus(cellar: Cellar, workplace: Path) -> None:
    (workplace / "texts").mkdir()
    words = ["codec", "cell", "memory", "store", "token", "block", "shard", "core", "task", "head", "margin"]
    for number in range(16):
        text = " ".join(words[(number * 7 + place * place) % len(words)] for place in range(40))
        (workplace / "texts" / f"{number:02}.txt").write_text(f"{text} {number}\n")
    (workplace / "params.yaml").write_text(SMALL)
    assert cellar("corpus", "build")[0] == 0
    assert cellar("corpus", "tokenizer")[0] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("corpus")
def test_every_point_is_measured_once_and_shown(cellar: Cellar, workplace: Path) -> None:
    code, out, err = cellar("eval", "run", "rate")

    assert code == 0, err
    measured = json.loads((workplace / "results" / "rate.json").read_text())
    assert [(point["width"], point["dtype"]) for point in measured["points"]] == [
        (8, "bfloat16"),
        (8, "int8"),
        (96, "bfloat16"),
        (96, "int8"),
    ]
    shown = out.splitlines()
    assert shown[0].endswith("documents that no codec saw; raw ids of a block are 16 bytes")
    assert any(line.split()[:3] == ["96", "int8", "100"] for line in shown)
    assert "recall by how often training saw the token" in shown
    tip = Store.open("file:build/store").tip()
    again = json.loads(cellar("eval", "run", "rate", "--json")[1])
    assert (again["evaluation"], Store.open("file:build/store").tip()) == (measured["evaluation"], tip)
    assert cellar("eval", "show", "results/rate.json")[1].splitlines()[0] == shown[0]


def test_what_does_not_go_with_rate_is_refused(cellar: Cellar) -> None:
    code, _, err = cellar("eval", "run", "rate", "--snapshot", "1234567890")

    assert code == 2
    assert "rate measures the pinned corpus" in err
