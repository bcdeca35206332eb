"""The addressing room's door to the store: how well an index finds memories by cues, and by questions."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from store import Recipe, Ref, Snapshot, Store, canonical_json
from tasks.addressing.kinds import make_tasks, value_vocabulary
from tasks.addressing.params import AddressingParams, QuestionParams
from tasks.addressing.questions import QuestionSample, ask, remember, summarise_questions
from tasks.addressing.run import AddressingEvaluator
from tasks.addressing.samples import AddressingSample
from tasks.addressing.squad import LONGEST_PARAGRAPH, QuestionSet, read_squad
from tasks.addressing.summary import summarise
from tasks.assembly import worker_documents
from tasks.codec import load_codec
from tasks.corpus import element_split, load_tokenizer
from tasks.errors import TooLittleText
from tasks.evaluation import PublishedEvaluation, SubjectName, Table, find_evaluation, publish_evaluation
from tasks.memory import MemoryParams
from tasks.progress import Progress, silent
from tasks.retrieval import Index, RetrievalParams
from tasks.tables import encode_records, load_records

RECIPE = "evaluation.addressing/2"
SUBJECT: SubjectName = "addressing"
SAMPLES_RECIPE = "evaluation.addressing.samples/1"
QUESTIONS_RECIPE = "evaluation.questions/1"


def evaluate_addressing(
    store: Store,
    params: AddressingParams,
    *,
    snapshot: Snapshot,
    corpus: Sequence[Ref],
    progress: Progress = silent,
) -> PublishedEvaluation:
    """Ask the index pinned in a snapshot, and its baselines, for test-split memories by all kinds of cues.

    Cues are cut from the documents' own tokens, out of `corpus`, and looked up in what the memories decode
    to. Publishes `evaluation/<name>` (the summary as JSON) and `evaluation/<name>/samples` (Parquet, one row
    per task, share of changed tokens and searcher), or returns what is published for the same parameters,
    snapshot and corpus. Rates are facts beside them. `progress` counts samples.

    Raises `TooLittleText` when a kind has no task in the test-split documents, `StaleIndex` when the
    snapshot's index does not fit its memories.
    """
    shards = sorted(corpus, key=lambda ref: ref.name)
    recipe = addressing_recipe(params, snapshot.id, shards).fingerprint
    if (found := find_evaluation(store, recipe)) is not None:
        return found
    tokenizer = load_tokenizer(store, snapshot.one("tokenizer").ref)
    block_tokens = load_codec(snapshot.read(snapshot.one("codec"))).architecture.block_tokens
    index = Index.open(store, snapshot)
    texts = worker_documents(store, shards, tokenizer, snapshot.rows("memory"))
    asked = {name: ids for name, ids in texts.items() if element_split(name) == "test"}
    values = value_vocabulary(texts, tokenizer, params.rare_elements)
    tasks = make_tasks(asked, values, block_tokens, params)
    if missing := [kind.value for kind, group in tasks.items() if not group]:
        raise TooLittleText(
            f"the {len(asked)} test-split documents of snapshot {snapshot.id[:12]} have no place for a "
            f"{missing[0].replace('_', ' ')}; build more memories or shorten the tasks"
        )
    samples, rates = AddressingEvaluator.of(index, texts, tokenizer, params).run(tasks, progress)
    summary = summarise(samples, params)
    summary["settings"] = params.model_dump(mode="json")
    summary["snapshot"] = snapshot.id
    summary["elements"] = len(index.readout)
    summary["indexed_tokens"] = len(index.readout.tokens_N)
    return publish_evaluation(
        store,
        params.name,
        summary,
        {"samples": Table(encode_records(AddressingSample, samples), len(samples), SAMPLES_RECIPE)},
        recipe=recipe,
        requires=tuple(row.version for kind in ("index", "reranker") for row in snapshot.rows(kind)),
        provenance={"subject": SUBJECT, "snapshot": snapshot.id},
        message=f"Evaluate addressing of {snapshot.id[:12]}: {summary['tasks']} tasks",
        costs={"rates": rates},
    )


def addressing_recipe(params: AddressingParams, snapshot: str, corpus: Sequence[Ref]) -> Recipe:
    """How addressing is evaluated on the snapshot of an id, with the shards of its corpus."""
    inputs = (snapshot, *(ref.version for ref in sorted(corpus, key=lambda ref: ref.name)))
    return Recipe(RECIPE, params.model_dump(mode="json"), inputs)


def evaluate_questions(
    store: Store,
    params: QuestionParams,
    memory: MemoryParams,
    retrieval: RetrievalParams,
    *,
    snapshot: Snapshot,
    path: Path,
    longest: int = LONGEST_PARAGRAPH,
    progress: Progress = silent,
) -> PublishedEvaluation:
    """Ask the questions of a file in the SQuAD layout for the paragraphs that they are about.

    The paragraphs are made memories with the codec and tokenizer of a snapshot, and asked for without any
    coordinate; nothing of the snapshot's own memories takes part. Publishes `evaluation/<name>` and
    `evaluation/<name>/samples` (one row per question and searcher), or returns what is published for the same
    parameters, codec, tokenizer and content of the file. `progress` counts groups of blocks that became
    memories.

    Raises `BadCorpus` for a file that cannot be read, has another layout, or a text that is too
    long: more than `longest` characters of a paragraph.
    """
    asked = read_squad(path, longest=longest)
    codec, tokenizer = snapshot.one("codec"), snapshot.one("tokenizer")
    chosen = {
        "questions": params.model_dump(mode="json"),
        "memory": memory.model_dump(mode="json"),
        "retrieval": retrieval.model_dump(mode="json", exclude={"reranker"}),
    }
    content = _digest(asked)
    recipe = Recipe(QUESTIONS_RECIPE, chosen, (codec.version, tokenizer.version, content)).fingerprint
    if (found := find_evaluation(store, recipe)) is not None:
        return found
    words = load_tokenizer(store, tokenizer.ref)
    loaded = load_codec(snapshot.read(codec))
    remembered = remember(asked.paragraphs, loaded, words, memory, retrieval, progress)
    samples, weights = ask(asked, remembered, words, params)
    summary = summarise_questions(samples, params)
    summary |= {
        "settings": chosen,
        "weights": weights,
        "paragraphs": len(asked.paragraphs),
        "content": content,
        "token_recall": remembered.token_recall,
        "stored_bytes": remembered.stored_bytes,
        "text_bytes": sum(len(paragraph.text.encode()) for paragraph in asked.paragraphs),
    }
    return publish_evaluation(
        store,
        params.name,
        summary,
        {"samples": Table(encode_records(QuestionSample, samples), len(samples), SAMPLES_RECIPE)},
        recipe=recipe,
        requires=(codec.version, tokenizer.version),
        provenance={"subject": "questions"},
        message=f"Ask {len(asked.questions)} questions on {len(asked.paragraphs)} paragraphs",
        costs={"file": path.name},
    )


def load_question_samples(payload: bytes) -> list[QuestionSample]:
    """The samples of an evaluation by questions; raises `BadPayload` when the bytes hold none."""
    return load_records(payload, QuestionSample, what="a table of question samples")


def _digest(asked: QuestionSet) -> str:
    """What a file holds, whatever its name and white space are."""
    return hashlib.sha256(canonical_json(asdict(asked))).hexdigest()


def load_addressing_samples(payload: bytes) -> list[AddressingSample]:
    """The samples of an evaluation; raises `BadPayload` when the bytes hold none."""
    return load_records(payload, AddressingSample, what="a table of addressing samples")
