"""The memory room's door to the store: build the memories of one worker shard, unit by unit."""

from collections.abc import Callable, Sequence

import torch

from store import Build, Element, Receipt, Ref, Store, fingerprint
from tasks.codec import Codec, load_codec
from tasks.corpus import Document, Tokenizer, is_worker_shard, load_shard, load_tokenizer
from tasks.errors import TaskError
from tasks.memory.cells import decode_cells, encode_cells
from tasks.memory.figures import Figures
from tasks.memory.measuring import measure
from tasks.memory.outcome import Outcome, ShardResult
from tasks.memory.params import MemoryParams
from tasks.memory.recipes import memory_recipe, rejection_recipe
from tasks.memory.record import missing_records, recorded, rejection
from tasks.memory.scoring import worker_products
from tasks.memory.worker import work_documents
from tasks.progress import Progress, silent

__all__ = ["build_shard", "missing_records", "recorded"]

UNIT_RECIPE = "memory.unit/1"

Advance = Callable[[float], None]
"""Called with the share of a unit that has been looked at."""


def build_shard(
    store: Store,
    build: Build,
    params: MemoryParams,
    shard: Ref,
    tokenizer: Ref,
    codec: Ref,
    progress: Progress = silent,
    *,
    device: str = "cpu",
) -> ShardResult:
    """Build the memories of one worker shard; commit the receipts of all shards to make them visible.

    A unit is `unit_documents` documents in the order of names. Units that an earlier run of this build
    finished are taken from their receipts, and documents already published for the same text, codec and
    parameters from the catalog; neither changes what the others become. A document below the thresholds is
    reported, and a record of it spares whoever comes later the same work. `progress` counts documents.

    Raises `TaskError` for a shard of the training half, because the codec has seen its documents.
    """
    if not is_worker_shard(shard):
        raise TaskError(f"{shard.name} trains the codec; build memories from odd shards")
    worker = _Worker(store, build, params, tokenizer, codec, device)
    row = store.catalog().get(shard.version)
    documents = load_shard(store.read(shard), row.facts.get("sources") if row else None)
    size = params.unit_documents
    receipts: list[Receipt] = []
    outcomes: list[Outcome] = []
    worked = 0
    for number, start in enumerate(range(0, len(documents), size)):
        chosen = documents[start : start + size]

        def advance(share: float, start: int = start, count: int = len(chosen)) -> None:
            progress(start + int(share * count), len(documents))

        receipt, unit_outcomes, computed = worker.unit(f"{shard.name}/{number:04d}", chosen, advance)
        if receipt is not None:
            receipts.append(receipt)
        outcomes += unit_outcomes
        worked += computed
        progress(start + len(chosen), len(documents))
    return ShardResult(shard, tuple(receipts), tuple(outcomes), worked)


class _Worker:
    """One codec, one tokenizer and one set of parameters at work; both are loaded when first needed."""

    def __init__(
        self, store: Store, build: Build, params: MemoryParams, tokenizer: Ref, codec: Ref, device: str
    ) -> None:
        self._store = store
        self._catalog = store.catalog()
        self._build = build
        self._finished = build.receipts()
        self._params = params
        self._tokenizer = tokenizer
        self._codec = codec
        self._device = device
        self._loaded: tuple[Tokenizer, Codec] | None = None
        self._identity = params.identity()
        self._compute: dict[str, str] = {}
        if "products" in self._identity:  # what was asked for; what the processor had is told beside it
            products = worker_products(params, torch.device(device))
            self._compute["product_dtype"] = str(products).removeprefix("torch.")

    def unit(
        self, unit: str, documents: Sequence[Document], advance: Advance
    ) -> tuple[Receipt | None, list[Outcome], int]:
        """Receipt of a unit (None if the catalog holds all of it), outcomes, and documents computed now."""
        recipe = fingerprint(UNIT_RECIPE, params={}, inputs=[self.recipe(d) for d in documents])
        receipt = self._finished.get(unit)
        # A unit of that name made from other documents or parameters is done again.
        if receipt is not None and receipt.notes.get("recipe") == recipe:
            return receipt, [Outcome.from_dict(values) for values in receipt.notes["outcomes"]], 0
        known = self._known(documents)
        new = [document for document in documents if document.name not in known]
        if not new:
            return None, [known[document.name] for document in documents], 0
        with self._build.writer(unit=unit) as writer:
            for outcome, element in self._work(new, advance):
                known[outcome.name] = outcome
                writer.add(element)
            outcomes = [known[document.name] for document in documents]
            notes = {"recipe": recipe, "outcomes": [outcome.to_dict() for outcome in outcomes]}
            return writer.finish(notes=notes), outcomes, len(new)

    def recipe(self, document: Document) -> str:
        """Fingerprint of one document's memory."""
        return memory_recipe(
            self._params, document.name, document.digest, self._tokenizer, self._codec
        ).fingerprint

    def _known(self, documents: Sequence[Document]) -> dict[str, Outcome]:
        """Outcomes of the documents that were published or rejected before."""
        recipes = {document.name: self.recipe(document) for document in documents}
        rejections = {name: rejection_recipe(recipe) for name, recipe in recipes.items()}
        rows = self._catalog.find_many([*recipes.values(), *rejections.values()])
        known = {}
        for name, recipe in recipes.items():
            row = rows.get(recipe) or rows.get(rejections[name])
            if row is not None:
                ref = row.ref if row.recipe == recipe else None
                known[name] = Outcome(name, ref, Figures.from_dict(row.facts))
        return known

    def _work(self, documents: Sequence[Document], advance: Advance) -> list[tuple[Outcome, Element]]:
        """Outcome of every document, and its memory or, below the thresholds, the record of that.

        Figures are those of the payload's own bytes, read back with the full softmax.
        """
        tokenizer, codec = self._load()
        ids = tokenizer.encode_many([document.text for document in documents])
        worked = work_documents(codec, ids, self._params, lambda done, total: advance(done / total))
        payloads = [encode_cells(item.memory) for item in worked]
        steps = [int(item.steps_N.sum()) for item in worked]
        stored = [decode_cells(payload, codec.architecture) for payload in payloads]
        figures = measure(codec, ids, stored, steps, self._params)
        results: list[tuple[Outcome, Element]] = []
        for document, payload, measured in zip(documents, payloads, figures, strict=True):
            accepted = (
                measured.token_recall >= self._params.token_recall and measured.loss <= self._params.loss
            )
            if accepted:
                element = self._element(document, payload, measured)
            else:
                element = rejection(document, self.recipe(document), measured)
            ref = element.ref if accepted else None
            results.append((Outcome(document.name, ref, measured), element))
        return results

    def _element(self, document: Document, payload: bytes, figures: Figures) -> Element:
        return Element(
            "memory",
            document.name,
            payload,
            requires=(self._codec.version,),
            provenance={
                "recipe": self.recipe(document),
                "document": document.digest,
                "tokens": figures.tokens,
                "codec": str(self._codec),
                "tokenizer": str(self._tokenizer),
                "params": self._identity,
            },
            facts={**figures.to_dict(), "source": document.source, **self._compute},
        )

    def _load(self) -> tuple[Tokenizer, Codec]:
        if self._loaded is None:
            codec = load_codec(self._store.read(self._codec)).to(self._device)
            self._loaded = load_tokenizer(self._store, self._tokenizer), codec
        return self._loaded
