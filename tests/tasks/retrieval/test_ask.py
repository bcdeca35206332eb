"""Questions in plain words find their documents, whatever the tokens at the edges or the case."""

from pathlib import Path

import pytest

from store import Element, Store
from tasks.codec import Codec
from tasks.corpus import Tokenizer
from tasks.errors import BadQuery
from tasks.memory import MemoryCells, encode_cells
from tasks.retrieval import Asker, Index, MemoryRecord, build_indexes, train_reranker
from tests.tasks.retrieval.conftest import PARAMS


@pytest.fixture(scope="module")
def asker(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[MemoryRecord],
    codec: Codec,
    tokenizer: Tokenizer,
) -> Asker:
    folder: Path = tmp_path_factory.mktemp("ask")
    store = Store.create(f"file:{folder}/store")
    elements = [
        Element("tokenizer", "bpe", tokenizer.to_bytes(), media="application/json"),
        Element("codec", "copying", codec.to_bytes()),
    ]
    for record in records:
        cells = MemoryCells.from_float(record.cells_NC, record.length, "bfloat16")
        name = record.name.removeprefix("memory/")
        facts = {"source": f"source of {record.name}"}
        elements.append(Element("memory", name, encode_cells(cells), facts=facts))
    refs = store.publish(elements, message="all")
    index = build_indexes(store, PARAMS, snapshot=store.pin(refs, message="memories"))
    reranker = train_reranker(store, PARAMS, index=index, codec=refs[1])
    full = store.pin([*refs, *index.all, reranker], message="full")
    return Asker(full, Index.open(store, full))


def _phrase(texts: dict[str, str], words: int) -> tuple[str, str]:
    """A run of words from the middle of a document that no other document holds, and the document's name."""
    for name, text in texts.items():
        split = text.split()
        for begin in range(len(split) // 2, len(split) - words):
            phrase = " ".join(split[begin : begin + words])
            flat = [" ".join(other.split()) for other in texts.values()]
            if phrase.isascii() and phrase.islower() and sum(phrase in other for other in flat) == 1:
                return phrase, name
    raise AssertionError("the documentation has such a phrase")


@pytest.mark.parametrize("words", [3, 6, 12])
@pytest.mark.parametrize("edge", ["{}", " {}", "{} ", "\n{}\n"])
def test_words_of_a_document_find_it_exactly(
    asker: Asker, texts: dict[str, str], words: int, edge: str
) -> None:
    phrase, name = _phrase(texts, words)
    best = asker.ask(edge.format(phrase))[0]
    assert (best.name, best.match) == (name, "exact")
    matched = "".join(token.text for token in best.tokens if token.matched)
    assert phrase in " ".join(matched.split())
    assert len(matched) < len(phrase) + 60


def test_an_answer_names_version_checksum_source_and_confidence(asker: Asker, texts: dict[str, str]) -> None:
    phrase, name = _phrase(texts, 6)
    best = asker.ask(phrase, context_tokens=10)[0]
    row = asker.snapshot.get(name)
    assert (best.version, best.checksum, best.source) == (row.version, row.digest, f"source of {name}")
    assert all(0 < token.confidence <= 1 for token in best.tokens)
    assert best.confidence > 0.5
    assert " ".join(phrase.split()) in " ".join(best.text.split())
    before = next(place for place, token in enumerate(best.tokens) if token.matched)
    assert before == 10


def test_words_in_another_case_are_found_and_said_to_be(asker: Asker, texts: dict[str, str]) -> None:
    phrase, name = _phrase(texts, 6)
    for other in (phrase.upper(), phrase.title(), phrase[:1].upper() + phrase[1:]):
        best = asker.ask(other)[0]
        assert (best.name, best.match) == (name, "case")


def test_half_remembered_words_come_near(asker: Asker, texts: dict[str, str]) -> None:
    phrase, name = _phrase(texts, 12)
    words = phrase.split()
    words[5] = "elephant"
    best = asker.ask(" ".join(words))[0]
    assert (best.name, best.match) == (name, "approximate")
    assert best.agreement < 1


def test_words_of_no_document_are_never_called_exact(asker: Asker) -> None:
    hits = asker.ask("zqxj wvkk 日本語")
    assert hits
    assert {hit.match for hit in hits} <= {"approximate", "nearest"}


def test_a_long_passage_is_asked_by_both_ends(asker: Asker, texts: dict[str, str]) -> None:
    name, text = max(texts.items(), key=lambda item: len(item[1]))
    best = asker.ask(text[:2000])[0]
    assert (best.name, best.match) == (name, "exact")


@pytest.mark.parametrize("question", ["", "  \n\t"])
def test_an_empty_question_is_refused(asker: Asker, question: str) -> None:
    with pytest.raises(BadQuery):
        asker.ask(question)


def test_words_that_run_on_beyond_a_documents_end_are_marked_where_they_stand(
    asker: Asker, texts: dict[str, str]
) -> None:
    name = asker.index.readout.names[7]
    ending = " ".join(texts[name].split()[-6:])
    best = asker.ask(f"{ending} elephants everywhere")[0]
    assert (best.name, best.match) == (name, "approximate")
    assert "".join(token.text for token in best.tokens if token.matched).strip() != ""
