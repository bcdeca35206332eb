"""Texts in the report: tasks with their answers, and documents read back from their memories."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any

from flows.formatting import section
from flows.report.conditions import in_reading_order, label

# A report is read by people: more texts, and longer ones, are in the per-sample table.
MOST_EXAMPLES = 24
MOST_DECODED = 12
MOST_TOKENS = 800
MOST_CHARACTERS = 1500

_PIECE = re.compile(r"\s*(?:\w+|[^\w\s])|\s+")


@dataclass(frozen=True)
class Answer:
    """What a condition answered, in pieces marked by whether they agree with the target."""

    label: str
    pieces: Sequence[tuple[str, bool]]
    exact: bool


@dataclass(frozen=True)
class Example:
    """A task with its answers; `found` tells whether the retrieved element is the task's own."""

    document: str
    kind: str
    retrieved: str
    found: bool
    cue: str
    target: str
    answers: Sequence[Answer]


@dataclass(frozen=True)
class Decoded:
    """A document read back from its memory, in runs of right or wrong tokens; `shown` of `total`."""

    document: str
    token_recall: object
    runs: Sequence[tuple[str, bool]]
    wrong: int
    shown: int
    total: int


def examples(summary: Mapping[str, Any]) -> list[Example]:
    """The first tasks with their answers, conditions in reading order."""
    return [
        Example(
            document=example["document"],
            kind=example["kind"],
            retrieved=example.get("retrieved") or "",
            found=_same_element(example["document"], example.get("retrieved") or ""),
            cue=cut(example["cue"], keep_end=True),
            target=cut(example["target"]),
            answers=list(_answers(example)),
        )
        for example in list(summary.get("examples") or ())[:MOST_EXAMPLES]
    ]


def reconstructions(summary: Mapping[str, Any]) -> list[Decoded]:
    """The first documents read back from their memories; neighbouring tokens of one verdict joined."""
    found = []
    for document in list(summary.get("reconstruction") or ())[:MOST_DECODED]:
        tokens = document["tokens"]
        shown = tokens[:MOST_TOKENS]
        runs = [
            ("".join(text for text, _ in run), right)
            for right, run in groupby(shown, key=lambda token: bool(token[1]))
        ]
        wrong = sum(not right for _, right in shown)
        found.append(
            Decoded(document["document"], document.get("token_recall"), runs, wrong, len(shown), len(tokens))
        )
    return found


def agreement(answer: str, target: str) -> list[tuple[str, bool]]:
    """Words and signs of an answer, each with whether the target has it too, in order.

    White space belongs to the word after it, as in byte-level tokens.
    """
    given, wanted = _PIECE.findall(answer), _PIECE.findall(target)
    right: set[int] = set()
    for block in SequenceMatcher(None, given, wanted, autojunk=False).get_matching_blocks():
        right.update(range(block.a, block.a + block.size))
    marked = [(piece, place in right) for place, piece in enumerate(given)]
    return [
        ("".join(text for text, _ in run), verdict) for verdict, run in groupby(marked, key=lambda m: m[1])
    ]


def _answers(example: Mapping[str, Any]) -> Iterator[Answer]:
    answers = section(example, "answers")
    target = cut(example["target"])
    for name in in_reading_order(answers):
        text = answers[name] or ""
        yield Answer(label(name), agreement(cut(text), target), text == example["target"])


def _same_element(document: str, retrieved: str) -> bool:
    """A document's name and its element's differ by the kind in front."""
    return retrieved.removeprefix("memory/") == document.removeprefix("memory/")


def cut(text: str, *, keep_end: bool = False) -> str:
    """A text as long as a report shows it, with an ellipsis where more was left out."""
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"…{text[-MOST_CHARACTERS:]}" if keep_end else f"{text[:MOST_CHARACTERS]}…"
