"""Files in the SQuAD layout are read as paragraphs and questions, and others are refused in a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.addressing import read_squad
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


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "has not the SQuAD layout"),
        ([], "has not the SQuAD layout"),
        ({"data": {}}, "'data' is no list"),
        ({"data": [3]}, "has not the SQuAD layout"),
        ({"data": [{"paragraphs": [{"context": 5, "qas": []}]}]}, "a 'context' is no text"),
        ({"data": [{"paragraphs": [{"context": "x"}]}]}, "'qas'"),
        ({"data": []}, "holds no question"),
        ("[" * 100_000, "has not the SQuAD layout"),
    ],
)
def test_another_layout_is_refused_in_a_sentence(tmp_path: Path, content: Any, sentence: str) -> None:
    with pytest.raises(BadCorpus, match=sentence):
        read_squad(_file(tmp_path, content))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadCorpus, match=r"nothing\.json cannot be read"):
        read_squad(tmp_path / "nothing.json")


@pytest.mark.skipif(not DATA.is_file(), reason="the shared data are not here")
def test_real_questions_belong_to_their_paragraphs() -> None:
    found = read_squad(DATA)
    names = {paragraph.name for paragraph in found.paragraphs}
    assert len(names) == len(found.paragraphs) >= 100
    assert {question.paragraph for question in found.questions} <= names
