"""Files in the SQuAD layout are read as paragraphs and questions, and others are refused in a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.addressing import LONGEST_QUESTION, read_squad
from tasks.corpus import CorpusParams
from tasks.errors import BadCorpus

DATA = Path(__file__).parents[4] / "shared" / "data" / "xquad_en_a.json"


def _file(folder: Path, content: Any) -> Path:
    path = folder / "questions.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def _paragraph(text: str, *questions: str) -> dict[str, Any]:
    answers = [{"answer_start": 0, "text": text[:3]}]
    return {"context": text, "qas": [{"id": q, "question": q, "answers": answers} for q in questions]}


def test_equal_paragraphs_are_one_document_with_the_questions_of_both(tmp_path: Path) -> None:
    articles = [
        {
            "title": "Water",
            "paragraphs": [_paragraph("Water boils.", "Who boils?"), _paragraph("Ice melts.")],
        },
        {"title": "Again", "paragraphs": [_paragraph("Water boils.", "What does water do?")]},
    ]
    found = read_squad(_file(tmp_path, {"version": "1.1", "data": articles}))
    assert [(p.article, p.text) for p in found.paragraphs] == [
        ("Water", "Water boils."),
        ("Water", "Ice melts."),
    ]
    assert [q.text for q in found.questions] == ["Who boils?", "What does water do?"]
    assert {q.paragraph for q in found.questions} == {found.paragraphs[0].name}
    assert len({q.name for q in found.questions}) == 2


def _article(**members: Any) -> dict[str, Any]:
    return {"data": [{"paragraphs": [_paragraph("Ice melts.", "What melts?")]}, members]}


def _asked(question: Any) -> dict[str, Any]:
    return _article(paragraphs=[_paragraph("Water boils.", "Who boils?"), {"context": "x", "qas": question}])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "it is no JSON from line 1, column 2 on"),
        ("[" * 100_000, "its lists or objects are nested too deeply"),
        ([], "the file is a list where an object belongs"),
        ({"version": 2}, "the file has no 'data'"),
        ({"data": {}}, "the file has an object as 'data' where a list belongs"),
        ({"data": [3]}, "article 1 is a number where an object belongs"),
        ({"data": [None]}, "article 1 is null where an object belongs"),
        (_article(), "article 2 has no 'paragraphs'"),
        (_article(title=None, paragraphs=[]), "article 2 has null as 'title' where text belongs"),
        (_article(paragraphs=[[]]), "article 2, paragraph 1 is a list where an object belongs"),
        (
            _article(paragraphs=[{"context": 5, "qas": []}]),
            "article 2, paragraph 1 has a number as 'context' where text belongs",
        ),
        (_article(paragraphs=[{"context": "x"}]), "article 2, paragraph 1 has no 'qas'"),
        (_asked([True]), "article 2, paragraph 2, question 1 is true or false where an object belongs"),
        (_asked([{"id": "a"}]), "article 2, paragraph 2, question 1 has no 'question'"),
    ],
)
def test_another_layout_is_refused_with_its_place(tmp_path: Path, content: Any, sentence: str) -> None:
    with pytest.raises(BadCorpus) as error:
        read_squad(_file(tmp_path, content))
    assert f"questions.json has not the SQuAD layout: {sentence}; give articles" in str(error.value)


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    silent = {"data": [{"paragraphs": [_paragraph("Water boils."), _paragraph("Ice melts.")]}]}
    for content, paragraphs in ((silent, 2), ({"data": []}, 0)):
        with pytest.raises(
            BadCorpus, match=rf"holds paragraphs \({paragraphs}\) but no question on them; give"
        ):
            read_squad(_file(tmp_path, content))


def test_bytes_of_another_encoding_are_refused_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "latin.json"
    path.write_bytes(b'{"data": "\xe9"}')
    with pytest.raises(BadCorpus, match="it is not UTF-8 from byte 11 on"):
        read_squad(path)


def test_numbers_that_nobody_reads_may_have_any_number_of_digits(tmp_path: Path) -> None:
    content = json.dumps({"data": [{"paragraphs": [_paragraph("Ice melts.", "What melts?")]}], "version": 77})
    found = read_squad(_file(tmp_path, content.replace("77", "7" * 5000)))
    assert [question.text for question in found.questions] == ["What melts?"]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (_article(title="\ud800", paragraphs=[]), "'title' of article 2"),
        (_article(paragraphs=[_paragraph("Ice \udfff")]), "'context' of article 2, paragraph 1"),
        (_asked([{"question": "Why \ud800?"}]), "'question' of article 2, paragraph 2, question 1"),
    ],
)
def test_text_that_is_no_unicode_is_refused_with_its_place(tmp_path: Path, content: Any, place: str) -> None:
    with pytest.raises(BadCorpus) as error:
        read_squad(_file(tmp_path, content))
    assert f"questions.json: the {place} is unusable: not valid Unicode" in str(error.value)


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_text_is_refused_with_its_place(tmp_path: Path, blank: str) -> None:
    with pytest.raises(
        BadCorpus, match="'question' of article 2, paragraph 2, question 1 is unusable: empty"
    ):
        read_squad(_file(tmp_path, _asked([{"question": blank}])))


def test_a_text_of_the_greatest_length_is_taken_and_a_longer_one_refused(tmp_path: Path) -> None:
    longest, question = CorpusParams().max_characters, "w" * LONGEST_QUESTION
    whole = _paragraph("w" * longest, question)
    found = read_squad(_file(tmp_path, {"data": [{"title": question, "paragraphs": [whole]}]}))
    assert (len(found.paragraphs[0].text), found.questions[0].text) == (longest, question)

    for content, place in (
        (_article(title=question + "w", paragraphs=[]), "'title' of article 2"),
        (_article(paragraphs=[_paragraph("w" * longest + "w")]), "'context' of article 2, paragraph 1"),
        (_asked([{"question": question + "w"}]), "'question' of article 2, paragraph 2, question 1"),
    ):
        with pytest.raises(BadCorpus, match=f"the {place} is unusable: longer than"):
            read_squad(_file(tmp_path, content))
    with pytest.raises(BadCorpus, match=r"longer than 8 characters"):
        read_squad(_file(tmp_path, _article(paragraphs=[])), longest=8)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadCorpus, match=r"nothing\.json does not exist; give a file of questions"):
        read_squad(tmp_path / "nothing.json")


@pytest.mark.skipif(not DATA.is_file(), reason="the shared data are not here")
def test_real_questions_belong_to_their_paragraphs() -> None:
    found = read_squad(DATA)
    names = {paragraph.name for paragraph in found.paragraphs}
    assert len(names) == len(found.paragraphs) >= 100
    assert {question.paragraph for question in found.questions} <= names
