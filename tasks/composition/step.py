"""The composition room's door to the store: shadows of a host beside what an index finds in a snapshot."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from store import Ref, Snapshot, Store
from tasks.assembly import worker_documents
from tasks.checkpoint import CHECKPOINT_S
from tasks.composition.params import CompositionParams
from tasks.composition.passages import draw_passages
from tasks.composition.reading import (
    WITH,
    WITHOUT,
    CompositionSample,
    Condition,
    Retrieved,
    continue_passages,
    others,
    prompt_tokens,
    retrieve,
)
from tasks.composition.recipes import ROUNDS, composition_recipe
from tasks.composition.sources import check_learned
from tasks.composition.summary import summarise
from tasks.evaluation import PublishedEvaluation, SubjectName, Table, find_evaluation, publish_evaluation
from tasks.progress import Progress, silent, turn_of
from tasks.retrieval import Asker, Index
from tasks.shadows import (
    ShadowParams,
    check_length,
    digest_of,
    learned_tokens,
    open_shadow,
    read_documents,
    stack_refs,
    standing_on,
)
from tasks.tables import encode_records
from tasks.unfinished import Unfinished

if TYPE_CHECKING:
    from tasks.hosts import Host

SUBJECT: SubjectName = "composition"
_SHORTER = "lower composition.cue_tokens and target_tokens"
SAMPLES_RECIPE = "evaluation.composition.samples/1"


def evaluate_composition(
    store: Store,
    host: "Host",
    names: Sequence[str],
    shadow: ShadowParams,
    params: CompositionParams,
    *,
    snapshot: Snapshot,
    corpus: Sequence[Ref],
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> PublishedEvaluation:
    """Continue strings of a snapshot's documents with shadows, with retrieved text, with both and neither.

    The index of the snapshot is asked with the cue; the decoded text of its first element comes before the
    cue in the host's prompt, in the host's own tokens. Strings are cut from the documents of `corpus`. Where
    `shadow.domain` names what one of the shadows was written from, strings that it learned are told apart:
    those of the documents that its stream came to, parted as its element records.
    Publishes `evaluation/<name>` and its `samples` (one row per condition and string), or returns what is
    published for the same. `progress` counts strings, over retrieval and all conditions. With `work_dir` an
    interrupted evaluation continues, bit for bit, from the strings that it kept.

    Raises `StaleInputs` where `shadow.domain` is not what a shadow was written from, `TooLittleText` where no
    document is long enough, `UnfitHost` for prompts longer than the host reads, and what opening shadows and
    index raises.
    """
    refs = stack_refs(store, names)
    documents = read_documents(store, shadow.domain) if shadow.domain.given else []
    digest = digest_of(documents)
    shards = sorted(corpus, key=lambda ref: ref.name)
    how = composition_recipe(host, refs, documents, params, snapshot=snapshot.id, corpus=shards)
    recipe = how.fingerprint
    unfinished = Unfinished(work_dir, f"{recipe} {params.name}", checkpoint_s)
    if (known := find_evaluation(store, recipe, name=params.name)) is not None:
        unfinished.remove()
        return known
    check_length(host, "a string with its cue", params.cue_tokens + params.target_tokens, _SHORTER)
    shadows = {ref: open_shadow(store, ref, host)[1] for ref in refs}
    check_learned(documents, [one.document for one in shadows.values()])
    began = time.monotonic()
    asker = Asker(snapshot, Index.open(store, snapshot))
    texts = worker_documents(store, shards, asker.tokenizer, snapshot.rows("memory"))
    passages = draw_passages(
        {name: asker.tokenizer.decode(ids) for name, ids in texts.items()},
        _learned(
            host,
            [
                learned_tokens(store, host, ref, one, documents)
                for ref, one in shadows.items()
                if documents and one.document == digest
            ],
        ),
        host.encode,
        _decoder(host),
        params,
    )
    rounds = 1 + len(WITHOUT) + len(WITH)
    assert rounds == ROUNDS, "plans count them"
    found = retrieve(
        asker,
        passages,
        context_tokens=params.context_tokens,
        unfinished=unfinished,
        progress=turn_of(progress, 0, rounds),
    )
    shown: dict[Condition, Sequence[Retrieved | None]] = {
        "host": [None] * len(found),
        "text": found,
        "other text": others(found),
    }
    longest = max(prompt_tokens(host, *one) for one in zip(passages, found, strict=True))
    check_length(host, "a string with the text before it", longest, "lower composition.context_tokens")
    samples: list[CompositionSample] = []
    for turn, condition in enumerate(WITHOUT, start=1):
        samples += continue_passages(
            host,
            passages,
            shown[condition],
            condition,
            unfinished=unfinished,
            progress=turn_of(progress, turn, rounds),
        )
    with standing_on(store, host, refs):
        for turn, (condition, like) in enumerate(WITH.items(), start=1 + len(WITHOUT)):
            samples += continue_passages(
                host,
                passages,
                shown[like],
                condition,
                unfinished=unfinished,
                progress=turn_of(progress, turn, rounds),
            )
    summary = {
        "protocol": "strings after a cue, scored with the right tokens before each; the index is asked with "
        "the cue alone",
        "host": str(host.ref),
        "shadows": [str(ref) for ref in refs],
        "snapshot": snapshot.id,
        **summarise(samples, params),
        "settings": dict(how.params),
    }
    published = publish_evaluation(
        store,
        params.name,
        summary,
        {"samples": Table(encode_records(CompositionSample, samples), len(samples), SAMPLES_RECIPE)},
        recipe=recipe,
        requires=[
            host.ref.version,
            *(ref.version for ref in refs),
            *(row.version for kind in ("index", "reranker") for row in snapshot.rows(kind)),
        ],
        provenance={"subject": SUBJECT, "host": str(host.ref), "snapshot": snapshot.id},
        costs={"seconds": time.monotonic() - began},
        message=f"Continue {len(passages)} strings of {snapshot.id[:12]} with {len(refs)} shadows",
    )
    unfinished.remove()
    return published


def _learned(host: "Host", learned: Sequence[Tensor]) -> Callable[[str], str]:
    """Whether the whole text of a document is among what any shadow learned, of token ids; else unknown."""
    if not learned:
        return lambda text: "unknown"
    texts = [_decoder(host)(ids_T.tolist()) for ids_T in learned]
    return lambda text: "yes" if any(text.strip() in said for said in texts) else "no"


def _decoder(host: "Host") -> Callable[[Sequence[int]], str]:
    """What turns token ids of a host into exactly their text."""

    def decode(ids: Sequence[int]) -> str:
        return str(host.tokenizer.decode(list(ids), clean_up_tokenization_spaces=False))

    return decode
