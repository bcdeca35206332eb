"""What a snapshot was made from is found in the store alone."""

from pathlib import Path

import pytest

from flows.provenance.corpora import CORPUS
from flows.provenance.inputs import core_of, corpora_of, named_core, shards_of
from store import Element, Ref, Store
from store.errors import ElementNotFound
from tasks.assembly.params import AssemblyParams
from tasks.corpus import CorpusParams, ingest, is_worker_shard, load_shard
from tasks.errors import StaleInputs, TooLittleText


class Place:
    """A store, and a folder of texts that is ingested into it."""

    def __init__(self, folder: Path) -> None:
        self.store = Store.create(str(folder / "store"))
        self.texts = folder / "texts"
        self.texts.mkdir()
        [self.codec] = self.store.publish([Element("codec", "c", b"", media="text/plain")], message="codec")
        for number in range(12):
            self.write(number, f"text number {number}")

    def write(self, number: int, text: str) -> None:
        (self.texts / f"t{number}.txt").write_text(text, encoding="utf-8")

    def ingest(self) -> Ref:
        params = CorpusParams(reader="folder", path=self.texts, shards=2, min_characters=1)
        return ingest(self.store, params).report_ref

    def memories(self, report: Ref) -> list[Ref]:
        """Stand-ins for the memories of a corpus: what they say of their documents is what counts here."""
        shards = filter(is_worker_shard, shards_of(self.store, [report]))
        documents = [document for shard in shards for document in load_shard(self.store.read(shard))]
        elements = [
            Element(
                "memory",
                document.name,
                document.text.encode(),
                media="text/plain",
                requires=(self.codec.version,),
                provenance={"document": document.digest},
            )
            for document in documents
        ]
        return self.store.publish(elements, message="memories")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_corpus_of_a_snapshot_is_the_one_that_holds_its_documents(place: Place) -> None:
    first = place.ingest()
    snapshot = place.store.pin([*place.memories(first), place.codec], message="pin")
    place.write(100, "another text")
    later = place.ingest()

    found = corpora_of(place.store, snapshot)

    assert later != first
    assert found == [later]  # it still holds every document, and is the newest that does


def test_changed_documents_are_found_in_the_corpus_that_they_came_from(place: Place) -> None:
    first = place.ingest()
    old = place.memories(first)
    changed = int(old[0].name.removeprefix("memory/t"))
    place.write(changed, "it says something else now")
    later = place.ingest()

    snapshot = place.store.pin([*old, place.codec], message="pin")

    assert corpora_of(place.store, snapshot) == [later, first]


def test_what_the_pinning_commit_says_of_corpora_counts(place: Place) -> None:
    first = place.ingest()
    place.write(100, "another text")
    place.ingest()
    store = Store.open(place.store.url, run={CORPUS: [str(first)]})

    snapshot = store.pin([*place.memories(first), place.codec], message="pin")

    assert corpora_of(place.store, snapshot) == [first]


def test_documents_that_no_corpus_holds_are_named(place: Place) -> None:
    foreign = Element("memory", "stray", b"x", media="text/plain", provenance={"document": "0" * 64})
    report = place.ingest()
    refs = [*place.memories(report), *place.store.publish([foreign], message="stray"), place.codec]

    with pytest.raises(TooLittleText, match=r"1 memories.*memory/stray"):
        corpora_of(place.store, place.store.pin(refs, message="pin"))


def test_a_core_fits_if_it_reads_the_codec_and_has_the_parameters(place: Place) -> None:
    params = AssemblyParams()
    snapshot = place.store.pin([place.codec], message="pin")
    assert core_of(place.store, snapshot, params) is None

    def core(payload: bytes, codec: str, params: AssemblyParams) -> Ref:
        made = Element(
            "core",
            params.name,
            payload,
            media="text/plain",
            requires=(codec,),
            provenance={"params": params.model_dump(mode="json")},
        )
        return place.store.publish([made], message="core")[0]

    [other] = place.store.publish([Element("codec", "d", b"d", media="text/plain")], message="codec")
    foreign = core(b"3", other.version, params)
    first, second = core(b"1", place.codec.version, params), core(b"2", place.codec.version, params)
    longer = core(b"4", place.codec.version, AssemblyParams(steps=params.steps + 1))

    assert core_of(place.store, snapshot, params) == second
    assert named_core(place.store, snapshot, str(first)) == first
    assert named_core(place.store, snapshot, f"core/{params.name}") == longer
    with pytest.raises(StaleInputs, match="codec/c"):
        named_core(place.store, snapshot, str(foreign))
    with pytest.raises(ElementNotFound, match="codec/c is no core; name one as core/NAME"):
        named_core(place.store, snapshot, "codec/c")
    with pytest.raises(ElementNotFound, match=r"there is no core 'nosuch' in .*; name one as core/NAME"):
        named_core(place.store, snapshot, "nosuch")
    sibling = core(b"5", place.codec.version, AssemblyParams(name="sibling"))
    with pytest.raises(ElementNotFound, match=r"core/\* fits 2 cores; name one of them, e.g. core/"):
        named_core(place.store, snapshot, "core/*")
    assert named_core(place.store, snapshot, "core/sib*") == sibling
