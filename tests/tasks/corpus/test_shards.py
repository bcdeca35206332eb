"""Shards spread documents evenly and encode to the same bytes whatever the order of arrival."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.element import Ref
from tasks.corpus.document import Document
from tasks.corpus.ledger import Ledger
from tasks.corpus.shards import Spill, encode_shard, is_worker_shard, load_shard, shard_of, sources_of
from tasks.corpus.splits import element_split
from tasks.errors import BadPayload

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
names = st.from_regex(r"[a-z\u00e9]{1,6}(/[a-z0-9._-]?[a-z])?", fullmatch=True)
documents = st.lists(st.builds(Document, names, texts, texts), max_size=12, unique_by=lambda d: d.name)


@given(documents, st.randoms(use_true_random=False))
def test_a_shard_round_trips_and_does_not_depend_on_order(rows: list[Document], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    payload = encode_shard(rows)

    assert encode_shard(shuffled) == payload
    assert load_shard(payload, sources_of(rows)) == sorted(rows, key=lambda d: d.name)


def test_where_documents_were_read_is_no_part_of_a_shard() -> None:
    here, there = ([Document(name, "text", f"{place}:{name}") for name in "ab"] for place in ("f", "g"))

    assert encode_shard(here) == encode_shard(there)
    assert [document.source for document in load_shard(encode_shard(here))] == ["", ""]


@pytest.mark.parametrize("sources", [None, [], ["a"], "ab", 7, {"a": "b"}])
def test_facts_that_do_not_list_the_sources_leave_them_unknown(sources: object) -> None:
    payload = encode_shard([Document("a", "x"), Document("b", "y")])

    assert load_shard(payload, sources) == [Document("a", "x"), Document("b", "y")]


def test_bytes_that_are_no_shard_are_refused() -> None:
    with pytest.raises(BadPayload, match="not a corpus shard"):
        load_shard(b"PAR1 nonsense PAR1")


def test_documents_spread_over_all_shards() -> None:
    counts = [0] * 16
    for i in range(1600):
        counts[shard_of(f"document-{i}", 16)] += 1

    assert min(counts) > 60


def test_odd_shards_feed_workers() -> None:
    assert is_worker_shard(3)
    assert is_worker_shard("corpus/docs/shard-13")
    assert not is_worker_shard(Ref("corpus/docs/shard-00", "0" * 64))


@pytest.mark.parametrize(
    "name", ["corpus/docs/report", "memory/x", "corpus/docs/shard-x", "corpus/docs/shard"]
)
def test_a_name_that_is_no_shard_is_neither_odd_nor_even(name: str) -> None:
    with pytest.raises(ValueError, match="names no shard"):
        is_worker_shard(name)


@given(documents)
def test_the_spill_returns_every_document_of_a_shard(rows: list[Document]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder, Spill(Path(folder), 4) as spill:
        for document in rows:
            spill.add(document)
        found = [document for shard in range(4) for document in spill.documents(shard)]

    assert sorted(found, key=lambda d: d.name) == sorted(rows, key=lambda d: d.name)


def test_the_ledger_keeps_the_first_of_equal_texts_and_renames_later_equal_names(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        first = ledger.admit(Document("a", "one", "f"))
        copy = ledger.admit(Document("b", "one", "f"))
        other = ledger.admit(Document("a", "two", "f"))

    assert first == Document("a", "one", "f")
    assert copy is None
    assert other == Document(f"a-{Document('', 'two', '').digest[:8]}", "two", "f")


def test_elements_split_in_the_declared_shares_and_always_the_same_way() -> None:
    sides = [element_split(f"memory/document-{i}") for i in range(5000)]

    assert sides == [element_split(f"memory/document-{i}") for i in range(5000)]
    assert abs(sides.count("train") / 5000 - 0.6) < 0.03
    assert abs(sides.count("validation") / 5000 - 0.1) < 0.02
    assert element_split("memory/numpy.sort") == "train"
