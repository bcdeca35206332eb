"""Lineage is read from the store's records, in both directions, down to documents and settings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.lineage import element_lineage, snapshot_lineage, tree_lines
from flows.lineage.commits import commit_record
from flows.plan.steps import changed_params
from store import Commit, Element, Ref, Store
from store.format import HEAD_PREFIX, seal
from tasks.corpus import CorpusParams, ingest, is_worker_shard, load_shard
from tasks.corpus.step import result_of

RUN = {"user": "ada", "host": "lab", "flow": "build", "flow_run": "r1", "settings": {"device": "cpu"}}
CODE = {"version": "1.0", "revision": "a" * 40}


class Chain:
    """A store with a corpus, a tokenizer, a codec, memories, an index, a snapshot and its evaluation."""

    def __init__(self, folder: Path) -> None:
        texts = folder / "texts"
        texts.mkdir()
        for number in range(12):
            (texts / f"t{number}.txt").write_text(f"text number {number}", encoding="utf-8")
        self.store = Store.open_or_create(str(folder / "store"), run={**RUN, **CODE})
        self.report = ingest(self.store, CorpusParams(reader="folder", path=texts, shards=2)).report_ref
        shards = result_of(self.report, self.store.read(self.report), reused=True).shards
        even = [ref for ref in shards if not is_worker_shard(ref)]
        [self.odd] = [ref for ref in shards if is_worker_shard(ref)]
        self.tokenizer = self.publish(
            "tokenizer", "bpe", provenance={"corpus": [ref.version for ref in even], "params": {"size": 300}}
        )
        self.codec = self.publish("codec", "c", requires=[self.tokenizer], corpus=list(map(str, even)))
        self.documents = load_shard(self.store.read(self.odd))
        sources = [f"{number}.txt" for number in range(len(self.documents))]
        self.memories = [
            self.publish(
                "memory",
                document.name,
                requires=[self.codec],
                facts={"source": document.source},
                provenance={"document": document.digest, "codec": str(self.codec)},
            )
            for document in load_shard(self.store.read(self.odd), sources)
        ]
        built = self.store.pin([*self.memories, self.codec, self.tokenizer], message="memories")
        self.index = self.publish(
            "index", "main", run={"inputs": [str(self.codec)], "snapshot": built.id, "params": {"tile": 4}}
        )
        everything = [row.ref for row in built.rows()]
        self.snapshot = self.store.pin([*everything, self.index], message="all")
        self.evaluation = self.publish(
            "evaluation", "a", provenance={"snapshot": self.snapshot.id, "samples": "s", "core": "core/x"}
        )
        self.store.tag("v1", self.snapshot.id)
        self.store.move_head("prod", self.snapshot.id, expect=None, action="promote", why="good")

    def publish(
        self,
        kind: str,
        name: str,
        *,
        requires: list[Ref] | None = None,
        provenance: dict[str, Any] | None = None,
        facts: dict[str, Any] | None = None,
        run: dict[str, Any] | None = None,
        **more: Any,
    ) -> Ref:
        element = Element(
            kind,
            name,
            name.encode(),
            media="text/plain",
            requires=tuple(ref.version for ref in requires or ()),
            provenance={**(provenance or {}), **more},
            facts=facts or {},
        )
        return self.store.publish([element], message=f"publish {name}", run=run)[0]

    def of(self, ref: Ref, **options: Any) -> dict[str, Any]:
        row = self.store.catalog().get(ref.version)
        assert row is not None
        return element_lineage(self.store, row, **options)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    return Chain(tmp_path_factory.mktemp("chain"))


def inputs(lineage: dict[str, Any]) -> dict[str, str]:
    return {entry["element"]: entry["role"] for entry in lineage["made_from"] if "element" in entry}


def test_a_memory_leads_to_its_document_shard_corpus_codec_and_tokenizer(chain: Chain) -> None:
    found = chain.of(chain.memories[0], down=False)

    assert found["document"] == {
        "digest": chain.documents[0].digest,
        "name": chain.documents[0].name,
        "source": "0.txt",
        "shard": str(chain.odd),
        "corpora": [str(chain.report)],
    }
    assert inputs(found) == {str(chain.codec): "codec"}
    [codec] = found["made_from"]
    assert inputs(codec)[str(chain.tokenizer)] == "requires"
    assert {role for ref, role in inputs(codec).items() if ref.startswith("corpus/")} == {"corpus"}
    made = found["made"]
    assert (made["by"], made["code"], made["run"]["settings"]) == ("ada@lab", CODE, RUN["settings"])
    assert "made_with" not in found


def test_what_was_made_with_a_codec_is_found_step_by_step(chain: Chain) -> None:
    found = chain.of(chain.codec, up=False)["made_with"]

    assert found["elements"] == [sorted([*map(str, chain.memories), str(chain.index)])]
    assert found["snapshots"][-1]["snapshot"] == chain.snapshot.id
    assert found["snapshots"][-1]["names"] == ["head:prod", "tag:v1"]
    assert [entry["evaluation"] for entry in found["evaluations"]] == [str(chain.evaluation)]
    levels = chain.of(chain.tokenizer, up=False)["made_with"]["elements"]
    assert levels == [[str(chain.codec)], *found["elements"]]
    assert chain.of(chain.tokenizer, up=False, depth=1)["made_with"]["elements"] == levels[:1]


def test_an_index_names_its_snapshot_and_parameters_though_its_identity_does_not(chain: Chain) -> None:
    found = chain.of(chain.index, down=False)

    assert found["params"] == {"tile": 4}
    assert found["made_from"][-1]["role"] == "snapshot"


def test_a_bound_keeps_a_lineage_short_and_nothing_is_told_twice(chain: Chain) -> None:
    [codec] = chain.of(chain.memories[0], down=False, depth=1)["made_from"]
    assert "made_from" not in codec

    [codec] = chain.of(chain.memories[0], down=False)["made_from"]
    tokenizer = next(entry for entry in codec["made_from"] if entry["role"] == "requires")
    assert [entry.get("above") for entry in tokenizer["made_from"]] == [True]


def test_a_snapshot_leads_to_documents_corpora_evaluations_and_the_heads_that_came(chain: Chain) -> None:
    found = snapshot_lineage(chain.store, chain.snapshot)

    digests = {entry["element"]: entry["document"] for entry in found["memories"]}
    assert set(digests.values()) == {document.digest for document in chain.documents}
    assert [corpus["corpus"] for corpus in found["corpora"]] == [str(chain.report)]
    assert {entry["role"] for entry in found["made_from"]} == {"codec", "index", "tokenizer"}
    assert [entry["evaluation"] for entry in found["made_with"]["evaluations"]] == [str(chain.evaluation)]
    [arrival] = found["made_with"]["heads"]
    assert (arrival["head"], arrival["until"], arrival["why"]) == ("prod", None, "good")
    assert found["pinned"][0]["by"] == "ada@lab"


def test_a_tree_counts_what_comes_in_numbers_and_names_the_rest(chain: Chain) -> None:
    codec = list(tree_lines(chain.of(chain.codec)))
    pinned = list(tree_lines(snapshot_lineage(chain.store, chain.snapshot)))
    leaf = list(tree_lines(chain.of(chain.evaluation)))

    count = len(chain.memories)
    assert codec[0] == str(chain.codec)
    shown = sum(line.strip().startswith("memory/") for line in codec)
    assert shown == count if count <= 6 else f"    memory ... {count - 1} more (--json lists them)" in codec
    assert "            flow build, run r1; code 1.0 " + "a" * 40 in codec
    assert any(line.strip() == f"index {chain.index}" for line in pinned)
    assert any("head prod pointed here" in line and "promote, by ada@lab, good" in line for line in pinned)
    assert leaf[-1] == "  made with it: nothing that is recorded"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
_FROM = ("user", "host", "command", "flow", "flow_run", "settings", "version", "revision")
RUNS = st.dictionaries(st.sampled_from(_FROM), JSON)
COMMIT = Commit(1, "", "", "publish", "Publish m", "2026-11-30T22:33:08+00:00")


@given(RUNS, JSON, JSON, JSON)
def test_a_record_of_any_shape_is_printed(
    run: dict[str, Any], params: Any, document: Any, count: Any
) -> None:
    made = commit_record(replace(COMMIT, run=run))
    entry = {"made": made, "params": params}
    element = {
        "element": "memory/m@1",
        **entry,
        "document": {"digest": document, "name": "m", "source": document},
        "made_from": [{"role": "codec", "element": "codec/c@1", **entry}],
    }
    snapshot = {
        "snapshot": "s",
        "names": [],
        "kinds": {},
        "elements": 1,
        "bytes": 1,
        "pinned": [made],
        "made_from": [],
        "memories": [{"element": "memory/m@1", "document": document}],
        "corpora": [{"corpus": "corpus/c/report@1", "documents": count, **entry}],
    }
    assert len([*tree_lines(element), *tree_lines(snapshot)]) > 6


@given(JSON, st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_parameters_of_any_shape_are_compared(old: Any, new: dict[str, Any]) -> None:
    assert all(isinstance(reason, str) for reason in changed_params(old, new))


ODD: list[Any] = ["text", 7, ["a", {}], None, {"codec": ["x"]}]


@pytest.mark.parametrize("odd", ODD, ids=map(str, ODD))
def test_what_another_program_recorded_stops_no_lineage(tmp_path: Path, odd: Any) -> None:
    chain = Chain(tmp_path)
    names = ("settings", "params", "inputs", "snapshot", "version", "flow", "corpus", "user", "host")
    run = dict.fromkeys(names, odd)
    chain.publish("corpus", "c/report", run=run)
    chain.publish("evaluation", "b", provenance={"snapshot": odd, "samples": odd, "core": odd}, run=run)
    memory = chain.publish("memory", "odd", provenance={"document": odd, "params": odd}, run=run)
    pinned = chain.store.pin([memory, chain.codec, chain.tokenizer], message="odd", run=run)

    assert str(memory) in "".join(tree_lines(chain.of(memory)))
    assert pinned.id in "".join(tree_lines(snapshot_lineage(chain.store, pinned)))


@pytest.mark.parametrize("damage", ["empty", "a history that is none"])
def test_damage_of_another_head_ends_no_lineage(chain: Chain, damage: str) -> None:
    told = snapshot_lineage(chain.store, chain.snapshot, up=False)
    record = {"name": "zz", "snapshot": chain.snapshot.id, "time": "t", "history": 5}
    chain.store.backend.put(HEAD_PREFIX + "zz", b"" if damage == "empty" else seal(record))
    try:
        heads = snapshot_lineage(chain.store, chain.snapshot, up=False)["made_with"]["heads"]
    finally:
        chain.store.backend.delete(HEAD_PREFIX + "zz")
    assert heads == told["made_with"]["heads"]


def test_flow_and_settings_that_are_those_of_the_entry_above_are_printed_once(chain: Chain) -> None:
    lines = list(tree_lines(snapshot_lineage(chain.store, chain.snapshot, down=False)))

    assert len([line for line in lines if " made " in line]) > 3
    assert [line.split() for line in lines if "settings" in line] == [["settings", "device", "cpu"]]
    assert len([line for line in lines if "flow build, run r1" in line]) == 1

    other = {**RUN, "flow_run": "r2", "settings": {"device": "cuda"}}
    made = chain.of(chain.memories[0], down=False)
    made["made_from"][0]["made"]["run"] = other
    told = [line.split() for line in tree_lines(made) if "settings" in line]
    assert told[:2] == [["settings", "device", "cpu"], ["settings", "device", "cuda"]]
