"""Ask a snapshot in plain words: the elements that hold them, and the decoded text around with its
confidence.

The question is encoded as it stands, with and without a leading space, and in other cases, because the same
words have other tokens at the edges of a text. What the charts, the token bag and the dense index find by
tokens is then judged as text: a reader asks for words.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from store import Snapshot
from tasks.codec import Codec, load_codec
from tasks.corpus import Tokenizer
from tasks.errors import BadQuery
from tasks.retrieval.confidence import confidences
from tasks.retrieval.index import Candidate, Index

Match = Literal["exact", "case", "approximate", "nearest"]
"""exact: the words as asked (white space aside); case: in another case; approximate: several of their tokens
in place; nearest: next to nothing of them, only the best that there is."""

_MATCHES: tuple[Match, ...] = ("exact", "case", "approximate", "nearest")
_SEVERAL = 2


@dataclass(frozen=True)
class AskedToken:
    """One decoded token: its text, the decoder's softmax probability, and whether it belongs to the
    answer."""

    text: str
    confidence: float
    matched: bool


@dataclass(frozen=True)
class AskHit:
    """An element that holds the words, or comes near; `start` is the first token shown, `checksum` the
    SHA-256 of the stored payload."""

    name: str
    version: str
    checksum: str
    source: str
    match: Match
    score: float
    agreement: float
    start: int
    tokens: tuple[AskedToken, ...]

    @property
    def text(self) -> str:
        """The decoded text shown."""
        return "".join(token.text for token in self.tokens)

    @property
    def confidence(self) -> float:
        """Mean softmax probability of the tokens shown."""
        return float(np.mean([token.confidence for token in self.tokens])) if self.tokens else 0.0


class Asker:
    """Answers questions from one snapshot: its index, its tokenizer, and its codec for the confidences."""

    def __init__(self, snapshot: Snapshot, index: Index) -> None:
        self.snapshot = snapshot
        self.index = index
        self.tokenizer = Tokenizer.from_bytes(snapshot.read(snapshot.one("tokenizer")))
        self.codec: Codec = load_codec(snapshot.read(snapshot.one("codec")))

    def ask(self, question: str, k: int = 5, context_tokens: int = 24) -> list[AskHit]:
        """The k best elements for a question, exact words first, with `context_tokens` on both sides of the
        match.

        Raises BadQuery for a question without a visible character.
        """
        words = question.split()
        if not words:
            raise BadQuery("the question is empty; ask with some words of the document you look for")
        found = [
            (self._locate(candidate, cue, words), candidate)
            for candidate, cue in self._candidates(question.strip(), 4 * k)
        ]
        found.sort(
            key=lambda pair: (_MATCHES.index(pair[0].match), -pair[1].score, -pair[1].agreement, pair[1].name)
        )
        return [self._hit(place, candidate, context_tokens) for place, candidate in found[:k]]

    def _candidates(self, question: str, k: int) -> Iterator[tuple[Candidate, np.ndarray]]:
        """Each element found by any spelling, with the spelling that fits it best."""
        cues = [self.tokenizer.encode(text) for text in _spellings(question)]
        longest = self.index.params.max_cue_tokens
        # A long question is asked by its beginning too: a cue counts by its last tokens.
        cues += [cue[:longest] for cue in cues if len(cue) > longest]
        best: dict[str, tuple[Candidate, np.ndarray]] = {}
        for cue, answers in zip(cues, self.index.search_many(cues, k), strict=True):
            for candidate in answers:
                known = best.get(candidate.name)
                if known is None or _strength(candidate) > _strength(known[0]):
                    best[candidate.name] = (candidate, cue[-longest:])
        ordered = sorted(best.values(), key=lambda pair: (*(-s for s in _strength(pair[0])), pair[0].name))
        yield from ordered[:k]

    def _locate(self, candidate: Candidate, cue: np.ndarray, words: list[str]) -> "_Place":
        """Where the words stand in the element: by text if they do, else by the tokens' alignment."""
        ids = self.index.readout.tokens(self.index.readout.row_of[candidate.name])
        text = self.tokenizer.decode(ids)
        pattern = r"\s+".join(re.escape(word) for word in words)
        matched = np.zeros(len(ids), dtype=bool)
        as_asked = re.search(pattern, text)
        if span := as_asked or re.search(pattern, text, re.IGNORECASE):
            matched[self._token_at(ids, span.start()) : self._token_at(ids, span.end() - 1) + 1] = True
            return _Place("exact" if as_asked else "case", matched)
        begin = candidate.offset - len(cue)
        # An offset at the element's end may stand for a cue that overhangs it by some tokens.
        begins = range(begin, candidate.offset) if candidate.offset == len(ids) else (begin,)
        matched = max((_overlay(ids, cue, begin) for begin in begins), key=np.count_nonzero)
        return _Place("approximate" if np.count_nonzero(matched) >= _SEVERAL else "nearest", matched)

    def _token_at(self, ids: np.ndarray, character: int) -> int:
        """The token that a character of the decoded text belongs to."""

        def characters_through(token: int) -> int:
            return len(self.tokenizer.decode(ids[: token + 1]))

        return bisect_right(range(len(ids)), character, key=characters_through)

    def _hit(self, place: "_Place", candidate: Candidate, context: int) -> AskHit:
        readout = self.index.readout
        row = self.snapshot.get(candidate.name)
        ids = readout.tokens(readout.row_of[candidate.name])
        where = np.flatnonzero(place.matched)
        first, last = (int(where[0]), int(where[-1])) if len(where) else (0, 0)
        start, stop = max(first - context, 0), min(last + 1 + context, len(ids))
        confidence = confidences(self.codec, self.snapshot.read(row), ids, start, stop)
        pieces = self.tokenizer.pieces(ids[start:stop])
        tokens = zip(pieces, confidence, place.matched[start:stop].tolist(), strict=True)
        return AskHit(
            name=candidate.name,
            version=candidate.version,
            checksum=row.digest,
            source=str(row.facts.get("source", row.provenance.get("source", ""))),
            match=place.match,
            score=candidate.score,
            agreement=candidate.agreement,
            start=start,
            tokens=tuple(AskedToken(text, sure, matched) for text, sure, matched in tokens),
        )


@dataclass(frozen=True)
class _Place:
    """How the words were found in an element, and which of its tokens (bool) they cover."""

    match: Match
    matched: np.ndarray


def _overlay(ids: np.ndarray, cue: np.ndarray, begin: int) -> np.ndarray:
    """Which tokens of an element (bool) equal those of a cue laid over it from `begin` (may be negative)."""
    place = np.arange(begin, begin + len(cue))
    inside = (place >= 0) & (place < len(ids))
    matched = np.zeros(len(ids), dtype=bool)
    matched[place[inside]] = ids[place[inside]] == cue[inside]
    return matched


def _spellings(question: str) -> list[str]:
    """The question in the cases worth trying, inside a text (after a space) and at its start."""
    cases = dict.fromkeys([question, question.lower(), question[:1].upper() + question[1:]])
    return [edge + spelling for spelling in cases for edge in (" ", "")]


def _strength(candidate: Candidate) -> tuple[float, float]:
    return candidate.score, candidate.agreement
