"""Asking a host for facts: how likely the right answer is beside wrong ones, and what the host says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from tasks.anneal import continuation
from tasks.facts.framings import ASKED, STATEMENT, Framing
from tasks.facts.world import Fact
from tasks.progress import Progress, silent
from tasks.unfinished import Unfinished

if TYPE_CHECKING:
    from tasks.hosts import Host

Floats = NDArray[np.float64]
_ROWS = 32
"""Answers that are scored together."""
_FRAMINGS = (*ASKED, STATEMENT)
"""Framings that no lesson uses, and the one that is repeated."""


@dataclass(frozen=True)
class FactSample:
    """One fact, asked for in one framing under one condition. Nats are means over the tokens of an answer."""

    condition: str
    """`host`, or the lesson that it was taught."""
    fact: int
    attribute: str
    entity: str
    answer: str
    framing: str
    new: bool
    """Whether no lesson uses the framing."""
    answer_nats: float
    taught_nats: float
    """Of the likeliest wrong answer that the lesson gives to others."""
    untaught_nats: float
    """Of the likeliest wrong answer that no lesson mentions."""
    said: str
    right: bool
    """Whether the answer is in what is said, greedily."""


def ask_facts(
    host: "Host",
    facts: Sequence[Fact],
    condition: str,
    *,
    said_tokens: int,
    unfinished: Unfinished | None = None,
    progress: Progress = silent,
) -> list[FactSample]:
    """Ask for every fact in the framings that no lesson uses, and in the one that is repeated.

    Whatever is attached to the host is at work. Facts whose answers an interrupted evaluation kept are not
    asked for again. `progress` counts facts.
    """

    def asked(places: range) -> list[FactSample]:
        return [_asked(host, facts[n], one, condition, said_tokens) for n in places for one in _FRAMINGS]

    kept = unfinished or Unfinished()
    return kept.rows(
        f"{condition} facts", FactSample, len(facts), asked, per_item=len(_FRAMINGS), progress=progress
    )


def longest_asked(host: "Host", facts: Sequence[Fact], *, said_tokens: int) -> int:
    """Tokens of the longest question of all facts with the longest answer, or with what is said to it."""
    prompts = [framing.ask(fact) for fact in facts for framing in _FRAMINGS]
    answers = {f" {answer}" for fact in facts for answer in _answers(fact)}
    longest = max(len(host.encode(answer)) for answer in answers)
    return max(len(host.encode(prompt)) for prompt in prompts) + max(said_tokens, longest)


def _answers(fact: Fact) -> tuple[str, ...]:
    """The right answer, the wrong ones that a lesson gives to others, and those of no lesson."""
    return (fact.value, *fact.taught, *fact.untaught)


def _asked(host: "Host", fact: Fact, framing: Framing, condition: str, said_tokens: int) -> FactSample:
    prompt = framing.ask(fact)
    nats = answer_nats(host, prompt, _answers(fact))
    said = continuation(host, torch.tensor(host.encode(prompt)), said_tokens)
    others = 1 + len(fact.taught)
    return FactSample(
        condition=condition,
        fact=fact.number,
        attribute=fact.attribute,
        entity=fact.entity,
        answer=fact.value,
        framing=framing.name,
        new=framing in ASKED,
        answer_nats=float(nats[0]),
        taught_nats=float(nats[1:others].min()),
        untaught_nats=float(nats[others:].min()),
        said=said,
        right=fact.value.casefold() in " ".join(said.split()).casefold(),
    )


@torch.no_grad()
def answer_nats(host: "Host", prompt: str, answers: Sequence[str]) -> Floats:
    """Mean nats per token (C) of each whole answer after a prompt and a space, computed in float32."""
    before = host.encode(prompt)
    rows = [host.encode(f" {answer}") for answer in answers]
    found: list[float] = []
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        longest = max(map(len, part))
        # What pads a row comes after it, where nothing that is scored can see it.
        ids_CT = torch.tensor([[*before, *row, *[host.end] * (longest - len(row))] for row in part])
        logits_CTV = host.model(
            input_ids=ids_CT.to(host.device), use_cache=False, logits_to_keep=longest + 1
        ).logits
        found += [_mean_nats(one_TV, row) for one_TV, row in zip(logits_CTV, part, strict=True)]
    return np.array(found)


def _mean_nats(logits_TV: Tensor, row: list[int]) -> float:
    targets_T = torch.tensor(row, device=logits_TV.device)
    return float(F.cross_entropy(logits_TV[: len(row)].float(), targets_T))
