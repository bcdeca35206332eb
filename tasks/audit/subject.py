"""What an audit is about: an evaluation, and everything that it, its core and its codec were made from."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from store import Ref, Row, Snapshot, Store
from store.errors import ElementNotFound
from tasks.assembly import worker_documents
from tasks.audit.documents import Side
from tasks.corpus import element_split, is_worker_shard, load_shard, load_tokenizer
from tasks.errors import BadPayload, StaleInputs, TooLittleText
from tasks.evaluation import Condition, EvaluationParams, Sample, load_samples
from tasks.progress import Progress


@dataclass(frozen=True)
class Subject:
    """An evaluation and everything that it and its core and codec say they were made from."""

    row: Row
    snapshot: Snapshot
    samples: list[Sample]
    samples_ref: Ref
    settings: EvaluationParams
    language: tuple[Ref, ...]
    """Even shards that the core or the codec learned from."""

    @classmethod
    def open(cls, store: Store, evaluation: Ref) -> "Subject":
        row = store.catalog().get(evaluation.version)
        if row is None:
            raise ElementNotFound(f"{store.url} has no {evaluation}; run `cellar eval run` first")
        try:
            settings = EvaluationParams.model_validate(json.loads(store.read(row))["settings"])
            core, samples = (Ref.parse(row.provenance[name]) for name in ("core", "samples"))
            snapshot = str(row.provenance["snapshot"])
        except (ValidationError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise StaleInputs(
                f"{evaluation.name}@{evaluation.version[:12]} is no evaluation of attachments that this "
                "version can read; run `cellar eval run` again"
            ) from error
        opened = store.snapshot(snapshot)
        codec = opened.one("codec")
        learned = _even_shards(store.catalog().get(core.version), str(core))
        learned += _even_shards(codec, str(codec.ref))
        return cls(
            row,
            opened,
            _checked(load_samples(store.read(samples)), str(samples)),
            samples,
            settings,
            tuple(sorted(set(learned))),
        )

    def documents(
        self, store: Store, shards: Sequence[Ref], progress: Progress
    ) -> Iterator[tuple[str, Side, NDArray[np.uint16]]]:
        """All documents with their sides, memories first; `progress` counts shards."""
        tokenizer = load_tokenizer(store, self.snapshot.one("tokenizer").ref)
        memories = self.snapshot.rows("memory")
        missing = {row.name for row in memories}
        for done, shard in enumerate((*shards, *self.language), start=1):
            if is_worker_shard(shard):
                texts = worker_documents(store, [shard], tokenizer, memories)
                missing -= texts.keys()
                for name, ids in texts.items():
                    yield name, Side[element_split(name).upper()], ids
            else:
                documents = load_shard(store.read(shard))
                texts_of = tokenizer.encode_many([document.text for document in documents])
                for document, ids in zip(documents, texts_of, strict=True):
                    yield f"corpus/{document.name}", Side.LANGUAGE, ids
            progress(done, len(shards) + len(self.language))
        if missing:
            raise TooLittleText(
                f"the corpus lacks the documents of {len(missing)} memories, the first {min(missing)}; give "
                "the shards that they were built from"
            )


_COMPARED = {Condition.NONE, Condition.RIGHT, Condition.WRONG, Condition.WRONG_WEIGHED}
"""Conditions that an evaluation always has: its gains are differences between them."""


def _checked(samples: list[Sample], of: str) -> list[Sample]:
    """The samples, if every known condition holds the same tasks once with figures that can be averaged."""
    tasks: dict[str, list[str]] = defaultdict(list)
    elements = {(sample.task, sample.element) for sample in samples}
    for sample in samples:
        tasks[sample.condition].append(sample.task)
    same = len({tuple(sorted(names)) for names in tasks.values()}) == 1
    once = len(elements) * len(tasks) == len(samples)
    usable = all(math.isfinite(sample.nll) and sample.target_tokens > 0 for sample in samples)
    if not (_COMPARED <= tasks.keys() <= set(Condition) and same and once and usable):
        raise BadPayload(f"{of} does not hold every task under every condition; evaluate again")
    return samples


def _even_shards(row: Row | None, of: str) -> list[Ref]:
    """The even shards that the record of a core or codec names."""
    try:
        named = [Ref.parse(text) for text in row.provenance["corpus"]] if row is not None else []
        found = [ref for ref in named if not is_worker_shard(ref)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StaleInputs(f"{of} does not say which shards it learned from; make it again") from error
    if not found:
        raise StaleInputs(f"{of} does not say which shards it learned from; make it again")
    return found
