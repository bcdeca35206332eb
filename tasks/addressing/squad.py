"""Question answering data in the SQuAD layout: paragraphs are the documents, questions name none of them.

This is the input of the question-only protocol: no cue is cut from a paragraph's own tokens, and where an
answer stands in its paragraph is not read. Results are never reported with coordinate-assisted ones.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.paths import existing_file
from tasks.corpus import CorpusParams, fault_of
from tasks.errors import BadCorpus

QUESTIONS = "question-only"
MOST_BYTES = 256 * 1024**2
"""A file that is larger is none that people ask questions on."""
LONGEST_PARAGRAPH = CorpusParams().max_characters
"""Characters of a paragraph: a paragraph becomes a memory as a document of a corpus does."""
LONGEST_QUESTION = 32_768
"""Characters of a question, or of a title: SQuAD's own longest question has 25,651, nearly all white space,
while every signal reads a question as a whole, without progress and without a place to stop."""

_SHAPES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    float: "a number",
    type(None): "null",
}


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


def read_squad(path: Path, *, longest: int = LONGEST_PARAGRAPH) -> QuestionSet:
    """Paragraphs and questions of a file: `data`, articles with `paragraphs` of `context` and `qas`.

    A paragraph that stands there twice is one document with the questions of both, so that equal texts do not
    compete. Raises BadCorpus, with the number of the article, paragraph and question, where the file cannot
    be read, has another layout, holds no question, or holds a text that is no valid Unicode or too long:
    `longest` characters for a paragraph, `LONGEST_QUESTION` for a question or a title.
    """
    existing_file(path, BadCorpus, remedy="give a file of questions in the SQuAD layout")
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= MOST_BYTES else b""
    except OSError as error:
        raise BadCorpus(f"{path} cannot be read ({error.strerror}); give a file of questions") from error
    if size > MOST_BYTES:
        raise BadCorpus(f"{path} is larger than {MOST_BYTES // 1024**2} MiB; give a smaller file")
    found = _collect(_Record(_decoded(data, path), path), longest)
    if not found.questions:
        raise BadCorpus(
            f"{path} holds paragraphs ({len(found.paragraphs):,}) but no question on them; give a file that "
            "has some below 'qas'"
        )
    return found


def _decoded(data: bytes, path: Path) -> Any:
    """The value that a file holds as JSON; whole numbers are floats, since none of them is read."""
    try:
        return json.loads(data.decode("utf-8-sig"), parse_int=float)
    except json.JSONDecodeError as error:
        fault = f"it is no JSON from line {error.lineno}, column {error.colno} on"
    except UnicodeDecodeError as error:
        fault = f"it is not UTF-8 from byte {error.start + 1} on"
    except RecursionError:
        fault = "its lists or objects are nested too deeply"
    raise _other_layout(path, fault)


def _collect(content: "_Record", longest: int) -> QuestionSet:
    by_text: dict[str, Paragraph] = {}
    questions: list[Question] = []
    for number, article in enumerate(content.records("data", "article")):
        title = f"article-{number:04d}"
        if "title" in article.members():
            title = article.text("title", shortest=0, longest=LONGEST_QUESTION)
        for paragraph in article.records("paragraphs", "paragraph"):
            text = paragraph.text("context", longest=longest)
            document = by_text.setdefault(text, Paragraph(f"paragraph-{len(by_text):06d}", title, text))
            for asked in paragraph.records("qas", "question"):
                question = asked.text("question", longest=LONGEST_QUESTION)
                questions.append(Question(f"question-{len(questions):06d}", question, document.name))
    return QuestionSet(tuple(by_text.values()), tuple(questions))


@dataclass(frozen=True)
class _Record:
    """A value of the file, expected to be an object, and where it stands: numbers are counted from 1."""

    value: Any
    path: Path
    place: str = ""

    def members(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self._misshapen(f"is {_SHAPES[type(self.value)]} where an object belongs")
        return self.value

    def records(self, name: str, noun: str) -> "list[_Record]":
        """The members of a list."""
        within = f"{self.place}, " if self.place else ""
        return [
            _Record(one, self.path, f"{within}{noun} {number}")
            for number, one in enumerate(self._member(name, list), start=1)
        ]

    def text(self, name: str, *, shortest: int = 1, longest: int) -> str:
        found: str = self._member(name, str)
        fault = fault_of(found, shortest=shortest, longest=longest) if found or shortest else None
        if fault is None and shortest and not found.strip():
            fault = "empty"
        if fault is not None:
            raise BadCorpus(
                f"{self.path}: the {name!r} of {self.place} is unusable: {fault}; correct the file"
            )
        return found

    def _member(self, name: str, shape: type) -> Any:
        members = self.members()
        if name not in members:
            raise self._misshapen(f"has no {name!r}")
        found = members[name]
        if not isinstance(found, shape):
            raise self._misshapen(f"has {_SHAPES[type(found)]} as {name!r} where {_SHAPES[shape]} belongs")
        return found

    def _misshapen(self, fault: str) -> BadCorpus:
        return _other_layout(self.path, f"{self.place or 'the file'} {fault}")


def _other_layout(path: Path, fault: str) -> BadCorpus:
    return BadCorpus(
        f"{path} has not the SQuAD layout: {fault}; give articles with paragraphs, context and qas"
    )
