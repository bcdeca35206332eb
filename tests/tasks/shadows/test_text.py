"""A domain in four parts that never meet."""

from pathlib import Path

import pytest

from store import Store
from store.errors import ElementNotFound
from tasks.corpus import CorpusParams, Document, ingest
from tasks.errors import BadCorpus, TooLittleText
from tasks.shadows import Domain, HeldParams, TextSource, digest_of, part, read_documents

END = 0
HELD = HeldParams(selection_tokens=64, guard_tokens=64, sealed_tokens=128)


def encode(text: str) -> list[int]:
    return [int(word) for word in text.split()]


def numbers(domain: Domain) -> list[set[int]]:
    """The words of each part; no word is in two documents."""
    parts = (domain.train_T, domain.selection_T, domain.guard_T, domain.sealed_T)
    return [set(tokens.tolist()) - {END} for tokens in parts]


def documents(count: int, words: int = 30) -> list[Document]:
    return [
        Document(f"d{i}", " ".join(str(1 + words * i + word) for word in range(words))) for i in range(count)
    ]


def test_whole_documents_are_held_out_and_names_and_order_decide_nothing() -> None:
    given = documents(40)
    domain = part(given, encode, END, HELD, train_tokens=200, seed=1)
    assert domain.by == "document"
    assert [len(domain.train_T), len(domain.selection_T), len(domain.sealed_T)] == [200, 64, 128]
    owners = [{(number - 1) // 30 for number in found} for found in numbers(domain)]
    for i, one in enumerate(owners):
        assert all(not one & other for other in owners[i + 1 :])
    renamed = [Document(f"x{i}", one.text) for i, one in enumerate(reversed(given))]
    again = part(renamed, encode, END, HELD, train_tokens=200, seed=1)
    assert numbers(again) == numbers(domain)
    assert numbers(part(given, encode, END, HELD, train_tokens=200, seed=2)) != numbers(domain)


def test_one_long_text_gives_its_last_regions() -> None:
    [whole] = documents(1, words=1_000)
    domain = part([whole], encode, END, HELD, train_tokens=400, seed=1)
    assert domain.by == "region"
    train, selection, guard, sealed = numbers(domain)
    assert train == set(range(1, 401))
    assert max(train) < min(selection)
    assert max(selection) < min(guard)
    assert max(guard) < min(sealed)
    assert max(sealed) == 1_000


@pytest.mark.parametrize(
    ("count", "words", "sentence"), [(20, 10, "for its selection part"), (1, 255, "nothing to learn")]
)
def test_too_little_text_is_said(count: int, words: int, sentence: str) -> None:
    with pytest.raises(TooLittleText, match=sentence):
        part(documents(count, words), encode, END, HELD, train_tokens=200, seed=1)


def test_text_comes_from_files_a_folder_or_a_corpus_and_has_one_digest(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("red", "white", "white-again"):
        (folder / f"{name}.txt").write_text(name[:5] * 3)
    found = read_documents(store, TextSource(path=folder))
    assert [document.text for document in found] == ["redredred", "whitewhitewhite"]
    assert len(read_documents(store, TextSource(path=folder / "red.txt"))) == 1
    ingest(store, CorpusParams(name="wines", reader="folder", path=folder, shards=2))
    published = read_documents(store, TextSource(corpus="wines"))
    assert sorted(one.text for one in published) == ["redredred", "whitewhitewhite"]
    assert [one.name for one in read_documents(store, TextSource(corpus="wines", prefix="r"))] == ["red"]
    assert digest_of(found) != digest_of(found[:1])
    with pytest.raises(BadCorpus, match="begins with 'x'"):
        read_documents(store, TextSource(corpus="wines", prefix="x"))
    with pytest.raises(ElementNotFound, match="no corpus beers"):
        read_documents(store, TextSource(corpus="beers"))
    with pytest.raises(BadCorpus, match="no text is named"):
        read_documents(store, TextSource())
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(BadCorpus, match=r"empty.txt has no text"):
        read_documents(store, TextSource(path=tmp_path / "empty.txt"))
    with pytest.raises(ValueError, match="not both"):
        TextSource(corpus="wines", path=folder)


@pytest.mark.parametrize(
    ("content", "reason"), [(b"\xff\xfe\x00", "not UTF-8"), (b"a\0b", "contains NUL characters")]
)
def test_why_a_file_holds_no_text_is_said(store: Store, tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "notes.txt").write_bytes(content)
    for path in (tmp_path / "notes.txt", tmp_path):
        with pytest.raises(BadCorpus, match=rf"has no text that can be used \(.*: {reason}\)"):
            read_documents(store, TextSource(path=path))


def test_a_path_below_the_home_folder_is_that_of_a_file_or_a_folder(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.txt").write_text("a cask")
    for path in ("~/notes", "~/notes/one.txt"):
        assert [one.text for one in read_documents(store, TextSource(path=Path(path)))] == ["a cask"]
    with pytest.raises(BadCorpus, match="zero byte"):
        read_documents(store, TextSource(path=Path("a\0b")))


@pytest.mark.parametrize(("name", "option"), [("web.jsonl", "--jsonl"), ("web.PARQUET", "--parquet")])
def test_records_are_not_learned_as_text(tmp_path: Path, name: str, option: str) -> None:
    (tmp_path / name).write_text('{"id": "one", "text": "words"}\n')
    with pytest.raises(BadCorpus, match=f"cellar corpus build {option}"):
        read_documents(Store.create(str(tmp_path / "store")), TextSource(path=tmp_path / name))
