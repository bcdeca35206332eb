"""A question with its candidate answers, laid out as one row whose answers are branches of one tree."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from tasks.errors import BadQuestion

MOST_TOKENS = 32_768
"""Tokens of one row; its mask has as many bytes as the square of them."""
MOST_CANDIDATES = 1_024


@dataclass(frozen=True)
class Question:
    """A prompt and the answers to choose from, each a whole answer that ends with end-of-sequence.

    Raises `BadQuestion` when the prompt or an answer is empty, there is no answer, or the row is too long.
    """

    prompt_ids: tuple[int, ...]
    candidates: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not self.prompt_ids or not self.candidates or not all(self.candidates):
            raise BadQuestion(
                "a question needs a prompt and candidates of at least one token each; end every candidate "
                "with end-of-sequence"
            )
        if len(self.candidates) > MOST_CANDIDATES:
            raise BadQuestion(
                f"a question has {len(self.candidates):,} candidates; give it {MOST_CANDIDATES:,} at most"
            )
        size = len(self.prompt_ids) + sum(len(ids) for ids in self.candidates)
        if size > MOST_TOKENS:
            raise BadQuestion(f"a question has {size:,} tokens with its candidates; {MOST_TOKENS:,} fit")


@dataclass(frozen=True)
class Tree:
    """The row of one question: T tokens, prompt first, then what its answers share and where they part.

    Answers that begin alike share those tokens. The last token of an answer is predicted and never read.
    """

    ids_T: np.ndarray
    """int64 token ids."""
    positions_T: np.ndarray
    """int64 position of each token in its own sequence; every branch continues at the prompt's length."""
    sees_TT: np.ndarray
    """bool; a token sees the prompt up to itself, the tokens of its own branch before it, and itself."""
    predictors_P: np.ndarray
    """int64 places of the row whose next token is scored, each once."""
    scored_JL: np.ndarray
    """int64 index into `predictors_P` for token l of answer j; 0 behind the answer's end."""
    targets_JL: np.ndarray
    """int64 token id that stands there; 0 behind the answer's end."""
    lengths_J: np.ndarray
    """int64 tokens of each answer, end-of-sequence included."""

    def __len__(self) -> int:
        return len(self.ids_T)

    @classmethod
    def of(cls, question: Question) -> Self:
        """Lay a question out."""
        prompt, ids = len(question.prompt_ids), list(question.prompt_ids)
        parents = list(range(-1, prompt - 1))
        children: dict[tuple[int, int], int] = {}
        predictors: dict[int, int] = {}
        longest = max(len(answer) for answer in question.candidates)
        scored_JL = np.zeros((len(question.candidates), longest), np.int64)
        targets_JL = np.zeros_like(scored_JL)
        for row, answer in enumerate(question.candidates):
            place = prompt - 1
            for column, token in enumerate(answer):
                scored_JL[row, column] = predictors.setdefault(place, len(predictors))
                targets_JL[row, column] = token
                if column == len(answer) - 1:
                    break
                following = children.setdefault((place, token), len(ids))
                if following == len(ids):
                    ids.append(token)
                    parents.append(place)
                place = following
        sees_TT = np.eye(len(ids), dtype=bool)
        positions_T = np.zeros(len(ids), np.int64)
        for place, parent in enumerate(parents[1:], start=1):  # a parent always stands before its children
            sees_TT[place] |= sees_TT[parent]
            positions_T[place] = positions_T[parent] + 1
        return cls(
            np.array(ids, np.int64),
            positions_T,
            sees_TT,
            np.array(list(predictors), np.int64),
            scored_JL,
            targets_JL,
            np.array([len(answer) for answer in question.candidates], np.int64),
        )
