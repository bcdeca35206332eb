"""The audit against a real store: published once beside an evaluation that stays as it is."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from store import Element, Ref, Store, canonical_json
from tasks.audit import (
    AuditParams,
    audit_evaluation,
    audit_of,
    load_audited,
    load_documents,
    load_pairs,
)
from tasks.corpus import Document, Tokenizer, TokenizerParams, element_split, encode_shard, train_bpe
from tasks.errors import BadPayload, StaleInputs, TooLittleText
from tasks.evaluation import Condition, EvaluationParams, Sample, encode_samples, load_samples, summarise

PARAMS = AuditParams()
EVALUATION = EvaluationParams(resamples=200)
TEXTS = sorted((text[:1200] for text in topics.values() if len(text) >= 1200), key=len)[:24]


@dataclass(frozen=True)
class Place:
    """A store with a finished evaluation."""

    store: Store
    evaluation: Ref
    corpus: list[Ref]
    copied: str
    """A test-split memory whose text the language stream holds too, but for a few words at its end."""


def names_of(split: str, count: int) -> list[str]:
    """Names of documents whose memories are on a side of the split."""
    names = (f"{split}{number:03d}" for number in range(1000))
    return [name for name in names if element_split(f"memory/{name}") == split][:count]


def samples_of(elements: list[str]) -> list[Sample]:
    """One task for each element, under every condition; the figures differ between tasks."""
    text = {"kind": "prefix_completion", "cue": "", "target": "", "written": ""}
    return [
        Sample(
            task=f"task/{element}",
            condition=condition.value,
            family=condition.family.value,
            element=element,
            evidence="" if condition is Condition.NONE else elements[number - 1],
            evidence_start=0,
            weight=1.0,
            attached=0,
            nll=1.0 + number + 0.1 * place,
            target_tokens=8,
            right_tokens=number % 9,
            exact=number % 2 == 0,
            bytes_read=0,
            **text,
        )
        for number, element in enumerate(elements)
        for place, condition in enumerate(Condition)
    ]


def furnish(
    url: str,
    tokenizer: Tokenizer,
    change: Callable[[list[Sample]], list[Sample]] = lambda samples: samples,
    *,
    traced: bool = True,
) -> Place:
    """Publish a corpus, what was made from it, and an evaluation; only what an audit reads is real."""
    store = Store.create(url)
    worker = [*names_of("test", 6), *names_of("train", 8), *names_of("validation", 2)]
    documents = [Document(name, text, "") for name, text in zip(worker, TEXTS, strict=False)]
    copied = documents[0]
    language = [Document(f"language{n}", text, "") for n, text in enumerate(TEXTS[16:])]
    language.append(Document("copy", copied.text[:-40] + " and no word more than that", ""))
    shards = [
        Element("corpus", f"topics/shard-{number:02d}", encode_shard(held), media="application/parquet")
        for number, held in enumerate((language, documents))
    ]
    words = Element("tokenizer", "bpe", tokenizer.to_bytes(), media="application/json")
    from_ = {"corpus": [str(shard.ref) for shard in shards]} if traced else {}
    codec = Element("codec", "c", b"codec", media="x/y", requires=(words.version,), provenance=from_)
    core = Element("core", "a", b"core", media="x/y", requires=(codec.version,), provenance=from_)
    memories = [
        Element(
            "memory",
            document.name,
            b"cells",
            media="x/y",
            requires=(codec.version,),
            provenance={"document": document.digest},
        )
        for document in documents
    ]
    store.publish([*shards, words, codec, core, *memories], message="everything that is evaluated")
    snapshot = store.pin([words.ref, codec.ref, *(memory.ref for memory in memories)], message="memories")
    samples = samples_of([f"memory/{document.name}" for document in documents[:6]])
    table = Element("evaluation", "attachment/samples", encode_samples(change(samples)), media="x/y")
    summary = {**summarise(samples, EVALUATION), "settings": EVALUATION.model_dump(mode="json")}
    report = Element(
        "evaluation",
        "attachment",
        canonical_json(summary),
        media="application/json",
        requires=(core.version, table.version),
        provenance={"snapshot": snapshot.id, "core": str(core.ref), "samples": str(table.ref)},
    )
    store.publish([table, report], message="evaluate")
    return Place(store, report.ref, [shard.ref for shard in shards], f"memory/{copied.name}")


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return train_bpe(TEXTS, TokenizerParams(vocab_size=600))


@pytest.fixture
def place(tmp_path: Path, tokenizer: Tokenizer) -> Place:
    return furnish(f"file:{tmp_path}/store", tokenizer)


def table(place: Place, name: str) -> bytes:
    found = audit_of(place.store, place.evaluation)
    assert found is not None
    return place.store.read(Ref.parse(found[0].provenance[name]))


def row(summary: dict[str, list[dict[str, object]]], of: str, against: str) -> dict[str, object]:
    [found] = [row for row in summary["comparisons"] if (row["of"], row["against"]) == (of, against)]
    return found


def test_an_audit_is_published_once_and_the_evaluation_stays(place: Place) -> None:
    store, before = place.store, place.store.catalog().rows("evaluation")
    assert audit_of(store, place.evaluation) is None
    made = audit_evaluation(store, PARAMS, evaluation=place.evaluation, corpus=place.corpus)
    commits = len(list(store.log()))
    again = audit_evaluation(store, PARAMS, evaluation=place.evaluation, corpus=place.corpus[::-1])
    assert (made.reused, again.reused) == (False, True)
    assert (again.summary, again.summary_ref) == (made.summary, made.summary_ref)
    assert len(list(store.log())) == commits
    assert audit_of(store, place.evaluation) == (store.catalog().get(made.summary_ref.version), made.summary)
    assert {row.version for row in before} < {row.version for row in store.catalog().rows("evaluation")}


def test_a_copied_document_is_told_of_and_nothing_else(place: Place) -> None:
    summary = audit_evaluation(place.store, PARAMS, evaluation=place.evaluation, corpus=place.corpus).summary
    assert summary["documents"] == {"language": 9, "train": 8, "validation": 2, "test": 6}
    tasks = row(summary, "tasks", "seen")
    assert (tasks["documents"], tasks["near_duplicates"], tasks["with_half_shared"]) == (6, 1, 1)
    assert row(summary, "worker", "language")["near_duplicates"] == 1
    assert row(summary, "language", "worker")["near_duplicates"] == 1
    assert row(summary, "test", "train")["near_duplicates"] == 0
    assert [row["condition"] for row in summary["evidence"]] == list(Condition)[1:]
    assert all(
        row
        == {"condition": row["condition"], "tasks": 6, "trained": 0, "validation": 0, "near_duplicates": 1}
        for row in summary["evidence"]
    )
    [pair] = load_pairs(table(place, "pairs"))
    assert (pair.left, pair.left_side, pair.right, pair.right_side) == (
        "corpus/copy",
        "language",
        place.copied,
        "test",
    )
    assert 0.8 < pair.jaccard == pair.common / pair.all_shingles < 1
    documents = {document.document: document for document in load_documents(table(place, "documents"))}
    assert len(documents) == 25
    assert documents[place.copied].nearest == "corpus/copy"
    assert documents[place.copied].in_seen >= documents[place.copied].in_language > 0
    assert documents[place.copied].in_test == 0


def test_scores_stand_beside_those_without_the_copied_document(place: Place) -> None:
    made = audit_evaluation(place.store, PARAMS, evaluation=place.evaluation, corpus=place.corpus)
    evaluated = place.store.catalog().get(place.evaluation.version)
    assert evaluated is not None
    samples = load_samples(place.store.read(Ref.parse(evaluated.provenance["samples"])))
    scores = made.summary["scores"]
    whole = summarise(samples, EVALUATION)
    without = summarise([s for s in samples if s.element != place.copied], EVALUATION)
    for name, expected in (("all", whole), ("without_near_duplicates", without)):
        assert {key: scores[name][key] for key in ("tasks", "conditions", "gain")} == {
            key: expected[key] for key in ("tasks", "conditions", "gain")
        }
    assert (scores["all"]["tasks"], scores["without_near_duplicates"]["tasks"]) == (6, 5)
    audited = load_audited(table(place, "samples"))
    assert [sample.task for sample in audited] == [sample.task for sample in samples]
    assert {sample.element for sample in audited if sample.near_duplicate} == {place.copied}
    assert all((sample.nearest == "corpus/copy") == sample.near_duplicate for sample in audited)


def test_a_choice_of_tasks_that_leaves_none_has_no_scores(place: Place) -> None:
    short = PARAMS.model_copy(update={"ngram_tokens": 1})
    made = audit_evaluation(place.store, short, evaluation=place.evaluation, corpus=place.corpus)
    assert made.summary["scores"]["without_shared_ngrams"] is None


def test_equal_inputs_give_equal_versions_in_another_store(
    place: Place, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    other = furnish(f"file:{tmp_path}/other", tokenizer)
    refs = [
        audit_evaluation(p.store, PARAMS, evaluation=p.evaluation, corpus=p.corpus).summary_ref
        for p in (place, other)
    ]
    assert refs[0] == refs[1]


def test_shards_without_the_documents_of_the_memories_are_named(place: Place) -> None:
    with pytest.raises(TooLittleText, match="lacks the documents of 16 memories"):
        audit_evaluation(place.store, PARAMS, evaluation=place.evaluation, corpus=place.corpus[:1])


def test_an_element_that_is_no_evaluation_of_attachments_is_refused(place: Place) -> None:
    store = place.store
    odd = Element("evaluation", "odd", b"[1, 2]", media="application/json")
    store.publish([odd], message="odd")
    with pytest.raises(StaleInputs, match="is no evaluation of attachments"):
        audit_evaluation(store, PARAMS, evaluation=odd.ref, corpus=place.corpus)


def test_a_codec_that_does_not_say_what_it_learned_from_is_named(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    place = furnish(f"file:{tmp_path}/store", tokenizer, traced=False)
    with pytest.raises(StaleInputs, match="does not say which shards it learned from"):
        audit_evaluation(place.store, PARAMS, evaluation=place.evaluation, corpus=place.corpus)


FORGED: dict[str, Callable[[list[Sample]], list[Sample]]] = {
    "a condition lacks a task": lambda samples: samples[1:],
    "a task twice": lambda samples: [*samples, *samples],
    "a condition that nobody knows": lambda samples: [replace(s, condition="odd") for s in samples],
    "no figure": lambda samples: [replace(s, nll=float("nan")) for s in samples],
    "no tokens": lambda samples: [replace(s, target_tokens=0) for s in samples],
    "nothing": lambda samples: [],
    "evidence that is not there": lambda samples: [replace(s, evidence="memory/x") for s in samples],
    "a document that is not there": lambda samples: [replace(s, element="memory/x") for s in samples[:7]],
}


@pytest.mark.parametrize("what", FORGED)
def test_samples_that_no_evaluation_writes_are_refused(
    what: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    place = furnish(f"file:{tmp_path}/store", tokenizer, FORGED[what])
    with pytest.raises(BadPayload, match="again"):
        audit_evaluation(place.store, PARAMS, evaluation=place.evaluation, corpus=place.corpus)
    assert audit_of(place.store, place.evaluation) is None


@pytest.mark.parametrize(
    "payload", [b"{}", b"[]", b"7", b"\xff", b'{"scores": 1, "comparisons": []}', b"[" * 99_999]
)
def test_a_forged_audit_is_refused(place: Place, payload: bytes) -> None:
    forged = Element(
        "evaluation",
        "audit",
        payload,
        media="application/json",
        provenance={"subject": "audit", "evaluation": str(place.evaluation)},
    )
    place.store.publish([forged], message="forged")
    with pytest.raises(BadPayload, match=r"is no (audit|summary) of an evaluation"):
        audit_of(place.store, place.evaluation)
