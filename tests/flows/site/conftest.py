"""A store with real memories, two snapshots in a line, evaluations, and names and texts by an enemy."""

from collections.abc import Mapping
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
import torch

from flows.site import SiteOptions, SiteReport, build_site
from store import Element, Ref, Snapshot, Store, canonical_json
from tasks.codec import Codec, CodecArchitecture, blocks, freeze
from tasks.corpus import Tokenizer, TokenizerParams, train_bpe
from tasks.memory import MemoryCells, encode_cells
from tasks.retrieval import ChartParams, RetrievalParams, build_indexes

ENEMY = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;{{7*7}}"
CONTROLS = "\x1b[31m\x00\u202e\u2028 end"
HOSTILE = f"memory/{ENEMY}"
RIGHT_TO_LEFT = "memory/שלום.عربي"
_ORDINARY = ("if", "for", "lambda", "return", "while", "with")
TEXTS = {f"memory/python.{name}": topics[name][:400] for name in _ORDINARY} | {
    HOSTILE: f"{ENEMY}{CONTROLS}\n\tand a second line, with the word marzipan in it\n" * 3,
    RIGHT_TO_LEFT: "שלום, a text with both directions.\n" * 4,
}
DROPPED, CHANGED, NEW = "memory/python.while", "memory/python.with", "memory/python.yield"


def _codec(vocabulary: int) -> Codec:
    """A codec whose cells are its tokens' own codes, so that it reads nearly every token back untrained."""
    architecture = CodecArchitecture(
        block_tokens=16, cell_width=16 * 64, slot_width=64, encoder_layers=0, decoder_layers=0
    )
    copying = Codec(architecture, vocabulary, torch.Generator().manual_seed(0))
    with torch.no_grad():
        for layer in (copying.to_cell, copying.from_cell):
            layer.weight.copy_(torch.eye(64))
            layer.bias.zero_()
    return freeze(copying)


class Cellar:
    """A store that is filled as flows fill one."""

    def __init__(self, url: str) -> None:
        Store.create(url)
        self.store = Store.open(url, run={"user": "somebody", "host": "somewhere", "command": ENEMY})
        words = [*TEXTS.values(), topics["yield"]]
        self.tokenizer: Tokenizer = train_bpe(words, TokenizerParams(vocab_size=500))
        self.codec = _codec(500)
        self.base = self.store.publish(
            [
                Element("tokenizer", "bpe", self.tokenizer.to_bytes(), media="application/json"),
                Element("codec", "copying", self.codec.to_bytes()),
            ],
            message="Publish tokenizer and codec",
        )

    def publish(self, texts: Mapping[str, str]) -> list[Ref]:
        """Memories of texts, by full name."""
        elements = []
        for name, text in texts.items():
            ids = self.tokenizer.encode(text)
            tokens_NT, _ = blocks(ids, self.codec.architecture.block_tokens)
            cells = MemoryCells.from_float(self.codec.encode(tokens_NT), len(ids), "bfloat16")
            elements.append(
                Element(
                    "memory",
                    name.removeprefix("memory/"),
                    encode_cells(cells),
                    requires=(self.base[1].version,),
                    provenance={"document": ENEMY + CONTROLS, "nested": {"seed": 1}},
                    facts={"source": f"{ENEMY}{CONTROLS}", "token_recall": 1.0},
                )
            )
        return self.store.publish(elements, message=f"Publish memories {ENEMY}{CONTROLS}")

    def pin(self, memories: list[Ref], message: str) -> Snapshot:
        """Memories with the readout of them, named by head docs."""
        first = self.store.pin([*self.base, *memories], message="Memories alone")
        params = RetrievalParams(charts=ChartParams())
        index = build_indexes(self.store, params, snapshot=first)
        snapshot = self.store.pin([*self.base, *memories, *index.all], message=message)
        why = f"better {ENEMY}{CONTROLS}"
        self.store.move_head("docs", snapshot.id, expect=self.store.head("docs"), action="promote", why=why)
        return snapshot

    def evaluate(self, snapshot: Snapshot, nll: float) -> None:
        """An evaluation of the form that `tasks.evaluation` publishes."""
        figures = {
            name: {
                "family": "external-memory",
                "nll": {"value": value, "low": value - 0.2, "high": value + 0.3},
                "greedy_exact": {"value": 0.5, "low": 0.4, "high": 0.6},
                "token_accuracy": {"value": 0.75, "low": 0.7, "high": 0.8},
            }
            for name, value in (("none", 2 * nll), ("retrieved", nll), (ENEMY, nll + 1))
        }
        summary: dict[str, Any] = {"snapshot": snapshot.id, "conditions": figures, "tasks": 40, "core": ENEMY}
        element = Element(
            "evaluation",
            "attachment",
            canonical_json(summary),
            media="application/json",
            provenance={"snapshot": snapshot.id},
        )
        self.store.publish([element], message=f"Evaluate {snapshot.id[:12]}")


@pytest.fixture(scope="session")
def cellar_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Snapshot, Snapshot]:
    """A store, its first and its second snapshot; tests leave it as it is."""
    place = Cellar(f"file:{tmp_path_factory.mktemp('site-store')}/store")
    memories = place.publish(TEXTS)
    first = place.pin(memories, "The first")
    place.evaluate(first, 1.5)
    fresh = place.publish({CHANGED: topics["with"][400:800], NEW: topics["yield"][:400]})
    kept = [ref for ref in memories if ref.name not in (DROPPED, CHANGED)]
    second = place.pin([*kept, *fresh], f"The second {ENEMY}{CONTROLS}")
    place.evaluate(second, 1.2)
    place.store.tag("v1", first.id)
    return place.store, first, second


@pytest.fixture(scope="session")
def site(cellar_store: tuple[Store, Snapshot, Snapshot], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of that store."""
    out = tmp_path_factory.mktemp("site") / "pages"
    report: SiteReport = build_site(cellar_store[0], out, SiteOptions())
    assert (report.snapshots, report.texts, report.texts_left_out) == (4, 9, 0)
    return out
