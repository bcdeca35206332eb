"""The corpus room's door to the store: ingest documents into shards, train or adopt a tokenizer."""

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from store import Element, Recipe, Ref, Store, canonical_json, fingerprint
from store.paths import existing_file, usable_path
from tasks.corpus.adoption import adopt
from tasks.corpus.document import Skipped
from tasks.corpus.ledger import Ledger
from tasks.corpus.params import CorpusParams, TokenizerParams
from tasks.corpus.shards import (
    MEDIA,
    Spill,
    encode_shard,
    is_worker_shard,
    load_shard,
    shard_name,
    sources_of,
)
from tasks.corpus.sources import Source, open_source
from tasks.corpus.tokenizer import Tokenizer, train_bpe
from tasks.errors import BadCorpus, BadPayload
from tasks.progress import Progress, silent

ADOPTION_RECIPE = "corpus.adopt_tokenizer/2"
JSON_MEDIA = "application/json"
MAX_LISTED = 1000
"""Skipped documents listed by name in a report; beyond that only the counts by reason go on."""


@dataclass(slots=True)
class CorpusReport:
    """What became of the documents of a source; lengths in characters."""

    documents: int = 0
    characters: int = 0
    worker_documents: int = 0
    """Documents in odd shards."""
    duplicates: int = 0
    """Documents left out because their text was already there."""
    skipped: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    """How many were skipped for each reason."""
    listed: list[dict[str, str]] = field(default_factory=list)
    """The first skipped documents: name and reason."""


@dataclass(frozen=True, slots=True)
class CorpusResult:
    """A published corpus: references to its shards in order, to its report, and the report itself."""

    shards: list[Ref]
    report: CorpusReport
    report_ref: Ref
    reused: bool
    """True when the store already held it and nothing was read but for its identity."""

    @property
    def worker_shards(self) -> list[Ref]:
        return [ref for ref in self.shards if is_worker_shard(ref)]

    @property
    def language_shards(self) -> list[Ref]:
        return [ref for ref in self.shards if not is_worker_shard(ref)]


def ingest(store: Store, params: CorpusParams, progress: Progress = silent) -> CorpusResult:
    """Read a source and publish it as `params.shards` shards and a report, in one commit.

    A source whose files and parameters are unchanged is recognised by their digests and not read again. A
    shard's version follows from its documents alone, so a changed source keeps the versions of the shards
    that the change does not touch. Memory holds one document while reading and one shard while writing.

    Raises BadCorpus when there is nothing to read, no document is left, or a file changed meanwhile.
    `progress` counts documents; their number is not known beforehand (total 0).
    """
    source = open_source(params)
    stamps = source.stamps()
    recipe = ingest_recipe(params, source).fingerprint
    if (found := _published(store, recipe)) is not None:
        return found
    with (
        tempfile.TemporaryDirectory(prefix="cellar-corpus-") as scratch,
        Spill(Path(scratch), params.shards) as spill,
    ):
        report = read_source(source, spill, Path(scratch) / "ledger", progress)
        if source.stamps() != stamps:
            raise BadCorpus("a source file changed while it was being read; run again when it is at rest")
        _publish(store, params, recipe, spill, report)
    published = _published(store, recipe)
    assert published is not None, "the commit that just succeeded made the report visible"
    return CorpusResult(published.shards, published.report, published.report_ref, reused=False)


def ingest_recipe(params: CorpusParams, source: Source) -> Recipe:
    """How a corpus is made of what its source holds now."""
    return Recipe("corpus.ingest/2", params.identity(), (source.identity(),))


def _published(store: Store, recipe: str) -> CorpusResult | None:
    row = store.catalog().find(recipe)
    return None if row is None else result_of(row.ref, store.read(row), reused=True)


def result_of(ref: Ref, payload: bytes, *, reused: bool) -> CorpusResult:
    """Decode the payload of a corpus report element; raises BadPayload when it is none."""
    try:
        body = json.loads(payload)
        shards = [Ref.parse(text) for text in body["shards"]]
        return CorpusResult(shards, CorpusReport(**body["report"]), ref, reused)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadPayload(f"{ref} is not the report of a corpus; ingest the corpus again") from error


def report_of(store: Store, shards: Sequence[Ref]) -> Ref | None:
    """The report of the corpus that consists of exactly these shards, None if there is none any more."""
    if not shards:
        return None
    wanted = sorted(shard.version for shard in shards)
    rows = store.catalog().versions(f"{shards[0].name.rpartition('/')[0]}/report")
    return next((row.ref for row in reversed(rows) if sorted(row.requires) == wanted), None)


def open_report(store: Store, ref: Ref) -> CorpusResult:
    """The corpus behind the reference of its report."""
    return result_of(ref, store.read(ref), reused=True)


def read_source(source: Source, spill: Spill, ledger_path: Path, progress: Progress) -> CorpusReport:
    """Spread the source's new documents over the spill, and count what became of each."""
    report = CorpusReport()
    reasons: Counter[str] = Counter()
    with Ledger(ledger_path) as ledger:
        for item in source.items():
            if isinstance(item, Skipped):
                reasons[item.reason] += 1
                if len(report.listed) < MAX_LISTED:
                    report.listed.append({"name": item.name, "reason": item.reason})
                continue
            document = ledger.admit(item)
            if document is None:
                report.duplicates += 1
                continue
            spill.add(document)
            report.documents += 1
            report.characters += len(document.text)
            progress(report.documents, source.params.limit or 0)
            if report.documents == source.params.limit:
                break
    report.reasons = dict(sorted(reasons.items()))
    report.skipped = reasons.total()
    if not report.documents:
        raise BadCorpus(f"no document is left to publish{_explain(report)}; check the corpus parameters")
    return report


def _explain(report: CorpusReport) -> str:
    if not report.reasons:
        return " (nothing was found)"
    return " (" + ", ".join(f"{count} {reason}" for reason, count in report.reasons.items()) + ")"


def _publish(store: Store, params: CorpusParams, recipe: str, spill: Spill, report: CorpusReport) -> None:
    """Write all shards and the report as one unit of a build and commit it."""
    visible = store.catalog()
    build = store.build(f"corpus-{recipe[:16]}", owner="corpus.ingest")
    shards: list[Ref] = []
    with build.writer(unit="shards") as writer:
        for element in shard_elements(params, spill, report):
            shards.append(element.ref)
            if not visible.known([element.version]):
                writer.add(element)
        body = {"shards": [str(ref) for ref in shards], "report": asdict(report)}
        writer.add(
            Element(
                "corpus",
                f"{params.corpus}/report",
                canonical_json(body),
                media=JSON_MEDIA,
                requires=tuple(ref.version for ref in shards),
                provenance={"recipe": recipe, "params": params.identity()},
                facts={"documents": report.documents, "characters": report.characters},
            )
        )
        receipt = writer.finish()
    documents = "1 document" if report.documents == 1 else f"{report.documents} documents"
    where = str(params.location) if params.location is not None else "installed documentation"
    build.commit(
        {receipt.unit: receipt},
        message=f"Ingest corpus {params.corpus}: {documents}",
        run={"source": where},
    )


def shard_elements(params: CorpusParams, spill: Spill, report: CorpusReport) -> Iterator[Element]:
    """Each shard as an element whose identity is its content and its place; where it was read is a fact."""
    for number in range(params.shards):
        documents = spill.documents(number)
        if is_worker_shard(number):
            report.worker_documents += len(documents)
        content = sorted(f"{d.digest} {d.name}" for d in documents)
        place: dict[str, Any] = {"corpus": params.corpus, "shard": number, "shards": params.shards}
        yield Element(
            "corpus",
            shard_name(params.corpus, number),
            encode_shard(documents),
            media=MEDIA,
            provenance={"recipe": fingerprint("corpus.shard/2", params=place, inputs=content), **place},
            facts={
                "documents": len(documents),
                "characters": sum(len(d.text) for d in documents),
                "sources": sources_of(documents),
            },
        )


def train_tokenizer(store: Store, params: TokenizerParams, *, corpus: Sequence[Ref]) -> Ref:
    """Publish the tokenizer learned on the even shards of a corpus, or the one of the given file.

    `corpus` are the shards in any order; odd ones are not read. Raises BadCorpus when the even shards hold no
    document, BadTokenizer or VocabularyTooLarge for a file that does not fit.
    """
    if params.file is not None:
        try:
            place = usable_path(params.file, BadCorpus, "tokenizer.file")
            given = existing_file(place, BadCorpus, remedy="set tokenizer.file").read_bytes()
        except OSError as error:
            raise BadCorpus(f"{params.file} cannot be read ({error.strerror}); set tokenizer.file") from error
        tokenizer = adopt(given)
        recipe = Recipe(ADOPTION_RECIPE, {"name": params.name}, (_digest(given),))
        provenance: dict[str, Any] = {"recipe": recipe.fingerprint, "file_digest": _digest(given)}
    else:
        shards = sorted((ref for ref in corpus if not is_worker_shard(ref)), key=lambda ref: ref.name)
        recipe = tokenizer_recipe(params, shards)
        if (row := store.catalog().find(recipe.fingerprint)) is not None:
            return row.ref
        tokenizer = train_bpe(_language_texts(store, shards), params)
        provenance = {
            "recipe": recipe.fingerprint,
            "params": recipe.params,
            "corpus": list(recipe.inputs),
        }
    element = Element(
        "tokenizer",
        params.name,
        tokenizer.to_bytes(),
        media=JSON_MEDIA,
        provenance=provenance,
        facts={"vocab_size": tokenizer.vocab_size},
    )
    message = f"Publish tokenizer {params.name} with {tokenizer.vocab_size} tokens"
    return store.publish([element], message=message)[0]


def tokenizer_recipe(params: TokenizerParams, corpus: Sequence[Ref]) -> Recipe:
    """How the tokenizer of these shards is trained, of which the odd ones do not count."""
    shards = sorted((ref for ref in corpus if not is_worker_shard(ref)), key=lambda ref: ref.name)
    options = params.model_dump(mode="json", exclude={"file"})
    return Recipe("corpus.train_tokenizer/1", options, tuple(ref.version for ref in shards))


def load_tokenizer(store: Store, ref: Ref) -> Tokenizer:
    """The tokenizer behind a reference."""
    return Tokenizer.from_bytes(store.read(ref))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _language_texts(store: Store, shards: Sequence[Ref]) -> Iterator[str]:
    """Texts of the given shards in order, one shard in memory at a time."""
    empty = True
    for ref in shards:
        for document in load_shard(store.read(ref)):
            empty = False
            yield document.text
    if empty:
        raise BadCorpus(
            "the even shards hold no document to learn tokens from; give a corpus with more documents"
        )
