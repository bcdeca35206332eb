"""Before/after cards: how the host and the host with its shadow go on with the same sealed text."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tasks.shadows import Shadow, attached
from tasks.unfinished import Unfinished

if TYPE_CHECKING:
    from tasks.hosts import Host


@dataclass(frozen=True)
class Card:
    """A beginning, its true continuation, and two greedy ones: of the host alone and with its shadow."""

    beginning: str
    truth: str
    before: str
    after: str


def cards(
    host: "Host", shadow: Shadow, chunks_NT: Tensor, *, count: int, tokens: int, unfinished: Unfinished
) -> list[Card]:
    """The cards of `count` chunks, evenly chosen.

    The beginning is as `beginning_of`; continuations have `tokens` tokens.
    """
    chosen = torch.linspace(0, len(chunks_NT) - 1, min(count, len(chunks_NT))).long()

    def card(places: range) -> list[Card]:
        return [_card(host, shadow, chunks_NT[chosen[place]], tokens) for place in places]

    return unfinished.rows("cards", Card, len(chosen), card)


def beginning_of(tokens: int) -> int:
    """How many tokens of a chunk of `tokens` a card begins with: the first half, at most 96."""
    return min(96, tokens // 2)


def _card(host: "Host", shadow: Shadow, ids_T: Tensor, tokens: int) -> Card:
    start = beginning_of(len(ids_T))
    before = continuation(host, ids_T[:start], tokens)
    with attached(host, shadow):
        after = continuation(host, ids_T[:start], tokens)
    truth = _text(host, ids_T[start : start + tokens])
    return Card(_text(host, ids_T[:start]), truth, before, after)


@torch.no_grad()
def continuation(host: "Host", ids_T: Tensor, tokens: int) -> str:
    """The greedy continuation of token ids, as text; whatever is attached to the host is at work."""
    model: Any = host.model
    ids_1T = ids_T.to(host.device)[None]
    made_1T = model.generate(
        ids_1T,
        attention_mask=torch.ones_like(ids_1T),
        max_new_tokens=tokens,
        do_sample=False,
        eos_token_id=host.end,
        pad_token_id=host.end,
    )
    return _text(host, made_1T[0, len(ids_T) :])


def _text(host: "Host", ids_T: Tensor) -> str:
    return str(host.tokenizer.decode(ids_T.tolist(), skip_special_tokens=True))
