"""Strings of a real snapshot: retrieval finds their documents, and a host reads what is decoded of them."""

from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics

import pytest
import torch

from store import Element, Ref, Snapshot, Store
from tasks.composition import CompositionParams, CompositionSample, evaluate_composition
from tasks.corpus import Document, encode_shard
from tasks.errors import BadPayload, StaleInputs, UnfitHost
from tasks.evaluation import PublishedEvaluation
from tasks.hosts import Host, open_host, publish_host
from tasks.progress import Progress
from tasks.shadows import (
    HeldParams,
    ShadowParams,
    TextSource,
    new_shadow,
    open_shadow,
    shadow_element,
    write_domain,
)
from tasks.tables import load_records
from tests.copied_memories import remember
from tests.host_parts import closed
from tests.hosted import host_folder  # noqa: F401
from tests.tasks.killing import Killed, stop_at
from tests.tasks.threads import one_thread  # noqa: F401 - of the whole module

PARAMS = CompositionParams(
    passages=6, cue_tokens=40, target_tokens=12, context_tokens=40, resamples=100, seed=2
)


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Snapshot, list[Ref]]:
    """An odd shard of short topics, their memories and their index."""
    store = Store.create(f"file:{tmp_path_factory.mktemp('composition')}/store")
    chosen = sorted(name for name in topics if 800 <= len(topics[name]) <= 2500)[:10]
    documents = [Document(name, topics[name], "topics") for name in chosen]
    shard = Element("corpus", "topics/shard-01", encode_shard(documents), media="application/parquet")
    return store, remember(store, documents), store.publish([shard], message="shard")


@pytest.fixture(scope="module")
def reader(furnished: tuple[Store, Snapshot, list[Ref]], host_folder: Path) -> Host:  # noqa: F811
    store = furnished[0]
    ref = publish_host(store, host_folder, "tiny")
    opened = open_host(store, host_folder.parent, ref, dtype="float32")
    zero = new_shadow(opened, (1, 3), document="ab" * 32, seeds={})
    draws = torch.Generator().manual_seed(3)
    full = replace(zero, deltas=tuple(0.1 * torch.randn(d.shape, generator=draws) for d in zero.deltas))
    store.publish([shadow_element("drawn", full, host=opened.ref)], message="drawn")
    store.publish([shadow_element("zero", zero, host=opened.ref)], message="zero")
    return opened


def test_four_conditions_and_a_wrong_text_are_scored_once(
    furnished: tuple[Store, Snapshot, list[Ref]], reader: Host
) -> None:
    store, snapshot, corpus = furnished
    made = evaluate_composition(
        *(store, reader, ["drawn"], ShadowParams(), PARAMS), snapshot=snapshot, corpus=corpus
    )
    assert made.summary_ref.name == "evaluation/composition"
    again = evaluate_composition(
        *(store, closed(reader), ["drawn"], ShadowParams(), PARAMS), snapshot=snapshot, corpus=corpus
    )
    assert again.reused
    renamed = PARAMS.model_copy(update={"name": "renamed"})
    other = evaluate_composition(
        *(store, reader, ["drawn"], ShadowParams(), renamed), snapshot=snapshot, corpus=corpus
    )
    assert other.summary_ref.name == "evaluation/renamed"
    assert store.read(other.summary_ref) == store.read(made.summary_ref)
    samples = load_records(store.read(made.samples_ref), CompositionSample, what="samples")
    assert len(samples) == 5 * 6
    assert {one.learned for one in samples} == {"unknown"}
    retrieval = made.summary["found"]
    assert retrieval["own"] >= 5 / 6
    assert retrieval["holds"] >= 5 / 6
    by = {
        name: [one for one in samples if one.condition == name]
        for name in ("host", "shadow", "text", "shadow + text", "other text")
    }
    assert [one.nats for one in by["host"]] != [one.nats for one in by["shadow"]]
    assert [one.found for one in by["text"]] == [one.found for one in by["shadow + text"]]
    assert all(a.found != b.found for a, b in zip(by["text"], by["other text"], strict=True))
    row = store.catalog().get(made.summary_ref.version)
    assert row is not None
    kinds = {store.catalog().get(version).ref.kind for version in row.requires}  # type: ignore[union-attr]
    assert {"host", "shadow", "index", "reranker", "evaluation"} <= kinds


def test_an_interrupted_evaluation_goes_on_to_the_same_bytes(
    furnished: tuple[Store, Snapshot, list[Ref]], reader: Host, tmp_path: Path
) -> None:
    store, snapshot, corpus = furnished
    work, seen = tmp_path / "work", list[int]()

    def evaluate(name: str, progress: Progress, work_dir: Path | None) -> PublishedEvaluation:
        params = PARAMS.model_copy(update={"name": name, "passages": 4})
        return evaluate_composition(
            *(store, reader, ["drawn"], ShadowParams(), params),
            snapshot=snapshot,
            corpus=corpus,
            progress=progress,
            work_dir=work_dir,
            checkpoint_s=0,
        )

    for last in (2, 5, 19):  # in retrieval, in the first condition, in one with shadows
        with pytest.raises(Killed):
            evaluate("killed", stop_at(last), work)
    resumed = evaluate("killed", stop_at(-1, seen), work)
    whole = evaluate("whole", stop_at(-1), None)

    assert seen == [4, 8, 12, 16, 19, 20, 21, 22, 23, 24]
    assert list(work.iterdir()) == []
    assert store.read(whole.summary_ref) == store.read(resumed.summary_ref)
    assert store.read(whole.samples_ref) == store.read(resumed.samples_ref)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"cue_tokens": 1_020}, r"its cue takes 1,032 tokens, more than the 1,024 .*cue_tokens and target"),
        ({"context_tokens": 4_096}, r"the text before it takes .* lower composition\.context_tokens"),
    ],
)
def test_more_than_the_host_reads_at_once_is_refused_before_any_string_is_scored(
    furnished: tuple[Store, Snapshot, list[Ref]], reader: Host, changes: dict[str, int], sentence: str
) -> None:
    store, snapshot, corpus = furnished
    params = PARAMS.model_copy(update={"name": "long", **changes})
    with pytest.raises(UnfitHost, match=sentence):
        evaluate_composition(
            *(store, reader, ["drawn"], ShadowParams(), params), snapshot=snapshot, corpus=corpus
        )


def test_a_shadow_of_zeros_changes_no_bit(furnished: tuple[Store, Snapshot, list[Ref]], reader: Host) -> None:
    store, snapshot, corpus = furnished
    params = PARAMS.model_copy(update={"name": "zero"})
    made = evaluate_composition(
        *(store, reader, ["zero"], ShadowParams(), params), snapshot=snapshot, corpus=corpus
    )
    samples = load_records(store.read(made.samples_ref), CompositionSample, what="samples")
    by = {
        name: [one.nats for one in samples if one.condition == name]
        for name in {s.condition for s in samples}
    }
    assert by["host"] == by["shadow"]
    assert by["text"] == by["shadow + text"]


def test_strings_that_were_learned_are_told_apart_by_the_text_that_was(
    furnished: tuple[Store, Snapshot, list[Ref]], reader: Host, tmp_path: Path
) -> None:
    store, snapshot, corpus = furnished
    folder = tmp_path / "learned"
    folder.mkdir()
    for name in sorted(name for name in topics if 800 <= len(topics[name]) <= 2500)[:6]:
        (folder / f"{name}.txt").write_text(topics[name])
    shadow = ShadowParams(
        name="learned",
        domain=TextSource(path=folder),
        held=HeldParams(split="document", selection_tokens=64, guard_tokens=64, sealed_tokens=64),
        layers=(1,),
        chunk_tokens=256,
        chunks=30,
    )
    write_domain(store, reader, shadow)
    made = evaluate_composition(
        *(store, reader, ["learned.written"], shadow, PARAMS), snapshot=snapshot, corpus=corpus
    )
    assert set(made.summary["learned"]) == {"yes", "no"}
    assert len(made.summary["composed"]) == 3
    named = {"snapshot": snapshot, "corpus": corpus}
    wider = ShadowParams(
        domain=shadow.domain, chunks=1, chunk_tokens=8
    )  # not what the shadow was written with
    params = PARAMS.model_copy(update={"name": "wider"})
    again = evaluate_composition(*(store, reader, ["learned.written"], wider, params), **named)
    assert again.summary["learned"] == made.summary["learned"]

    ref, whole = open_shadow(store, "learned.written", reader)
    record = store.catalog().get(ref.version)
    assert record is not None
    stopped = replace(
        whole, losses=whole.losses[:3], stopped="the loss ...; the step before it was taken back"
    )
    store.publish(
        [
            shadow_element(
                "stopped", stopped, host=reader.ref, provenance={"params": record.provenance["params"]}
            ),
            shadow_element("silent", whole, host=reader.ref),
        ],
        message="stopped early",
    )
    params = PARAMS.model_copy(update={"name": "stopped"})
    early = evaluate_composition(*(store, reader, ["stopped"], shadow, params), **named)
    assert early.summary["learned"].get("yes", 0) < made.summary["learned"]["yes"]
    with pytest.raises(BadPayload, match="does not say with which parameters it was written"):
        evaluate_composition(*(store, reader, ["silent"], shadow, params), **named)
    (folder / "more.txt").write_text("Another text makes another domain.")
    with pytest.raises(StaleInputs, match=r"shadow\.domain is not the text"):
        evaluate_composition(
            *(store, reader, ["learned.written"], shadow, PARAMS), snapshot=snapshot, corpus=corpus
        )
