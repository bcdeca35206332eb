"""The four kinds of tasks that the text names, drawn from documents (FEM-ASM, addressing)."""

from collections.abc import Mapping
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tasks.addressing.params import AddressingParams
from tasks.corpus import Tokenizer
from tasks.retrieval import CueTask, prefix_tasks, quote_tasks, rare_tokens, span_tasks, value_tasks


class Kind(StrEnum):
    """What a cue asks for."""

    PREFIX = "prefix_completion"
    SPAN = "span_restoration"
    VALUE = "value_restoration"
    QUOTE = "quote_continuation"


def value_vocabulary(
    texts: Mapping[str, NDArray[np.integer]], tokenizer: Tokenizer, rare_elements: int
) -> NDArray[np.bool_]:
    """Which tokens (V,) are values: numbers, and what occurs in at most `rare_elements` of the texts.

    A number is a token of decimal digits, with white space around it or not.
    """
    size = tokenizer.vocab_size
    number_V = np.array([tokenizer.decode([token]).strip().isdecimal() for token in range(size)])
    values: NDArray[np.bool_] = number_V | rare_tokens(texts, size, rare_elements)
    return values


def make_tasks(
    texts: Mapping[str, NDArray[np.integer]],
    value_V: NDArray[np.bool_],
    block_tokens: int,
    params: AddressingParams,
) -> dict[Kind, list[CueTask]]:
    """At most `params.tasks` different tasks of each kind; equal inputs give equal tasks.

    Texts are token ids by element name, `value_V` says which ids are values, and `block_tokens` where the
    blocks of an element begin. Texts too short for a task are left out.
    """
    count, answer = params.tasks, params.answer_tokens
    draws = {kind: np.random.default_rng([params.seed, row]) for row, kind in enumerate(Kind)}
    cue = {"count": count, "cue_tokens": params.cue_tokens}
    drawn = {
        Kind.PREFIX: prefix_tasks(
            texts, continuation_tokens=answer, block_tokens=block_tokens, generator=draws[Kind.PREFIX], **cue
        ),
        Kind.SPAN: span_tasks(texts, span_tokens=answer, generator=draws[Kind.SPAN], **cue),
        Kind.VALUE: value_tasks(
            texts, longest=params.value_tokens, value_V=value_V, generator=draws[Kind.VALUE], **cue
        ),
        Kind.QUOTE: quote_tasks(texts, continuation_tokens=answer, generator=draws[Kind.QUOTE], **cue),
    }
    return {
        kind: list({(task.name, task.offset): task for task in tasks}.values())
        for kind, tasks in drawn.items()
    }
