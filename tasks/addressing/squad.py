"""Question answering data in the SQuAD layout: paragraphs are the documents, questions name none of them.

This is the input of the question-only protocol: no cue is cut from a paragraph's own tokens, and where an
answer stands in its paragraph is not read. Results are never reported with coordinate-assisted ones.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import BadCorpus

QUESTIONS = "question-only"
MOST_BYTES = 256 * 1024**2
"""A file that is larger is none that people ask questions on."""


@dataclass(frozen=True)
class Paragraph:
    """A document: its name, the article that it belongs to, and its text."""

    name: str
    article: str
    text: str


@dataclass(frozen=True)
class Question:
    """A question, and the name of the paragraph that it was asked about."""

    name: str
    text: str
    paragraph: str


@dataclass(frozen=True)
class QuestionSet:
    """The paragraphs of a file and its questions, in its order."""

    paragraphs: tuple[Paragraph, ...]
    questions: tuple[Question, ...]


def read_squad(path: Path) -> QuestionSet:
    """Paragraphs and questions of a file: `data`, articles with `paragraphs` of `context` and `qas`.

    A paragraph that stands there twice is one document with the questions of both, so that equal texts do not
    compete. Raises BadCorpus where the file cannot be read, has another layout or holds no question.
    """
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= MOST_BYTES else b""
    except OSError as error:
        raise BadCorpus(f"{path} cannot be read ({error.strerror}); give a file of questions") from error
    if size > MOST_BYTES:
        raise BadCorpus(f"{path} is larger than {MOST_BYTES // 1024**2} MiB; give a smaller file")
    try:
        found = _collect(_list(json.loads(data.decode("utf-8-sig")), "data"))
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise BadCorpus(
            f"{path} has not the SQuAD layout ({error}); give articles with paragraphs, context and qas"
        ) from error
    if not found.questions:
        raise BadCorpus(f"{path} holds no question; give a file with questions on its paragraphs")
    return found


def _collect(articles: list[Any]) -> QuestionSet:
    by_text: dict[str, Paragraph] = {}
    questions: list[Question] = []
    for number, article in enumerate(articles):
        if not isinstance(article, dict):
            raise TypeError("an article is no object")
        title = article.get("title", f"article-{number:04d}")
        for paragraph in _list(article, "paragraphs"):
            text = _text(paragraph, "context")
            name = f"paragraph-{len(by_text):06d}"
            document = by_text.setdefault(text, Paragraph(name, str(title), text))
            for asked in _list(paragraph, "qas"):
                question = _text(asked, "question")
                questions.append(Question(f"question-{len(questions):06d}", question, document.name))
    return QuestionSet(tuple(by_text.values()), tuple(questions))


def _list(record: Any, name: str) -> list[Any]:
    found = record[name]
    if not isinstance(found, list):
        raise TypeError(f"{name!r} is no list")
    return found


def _text(record: Any, name: str) -> str:
    found = record[name]
    if not isinstance(found, str) or not found.strip():
        raise TypeError(f"a {name!r} is no text")
    return found
