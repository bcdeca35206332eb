"""A host continues strings with nothing, with retrieved text in its context, and with another's text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
import torch.nn.functional as F

from tasks.composition.passages import Passage
from tasks.progress import Progress, silent
from tasks.unfinished import Unfinished

if TYPE_CHECKING:
    from tasks.hosts import Host
    from tasks.retrieval import Asker

Condition = Literal["host", "shadow", "text", "shadow + text", "other text"]
WITHOUT: tuple[Condition, ...] = ("host", "text", "other text")
"""Conditions of the host alone: nothing before the cue, its retrieved text, the text of another passage."""
WITH: Mapping[Condition, Condition] = {"shadow": "host", "shadow + text": "text"}
"""Conditions with shadows on the host, and what they show."""


@dataclass(frozen=True)
class Retrieved:
    """What the index found for a passage's cue: an element and its decoded text around the match."""

    element: str
    match: str
    text: str


@dataclass(frozen=True)
class CompositionSample:
    """One string under one condition.

    `nats` is the mean over its tokens, `share` that of tokens that are likeliest where those before are
    right, `exact` whether all are: then greedy generation writes the string.
    """

    passage: int
    element: str
    learned: str
    condition: str
    found: str
    holds: bool
    """Whether the text that is shown has the string word for word, white space aside."""
    target: str
    nats: float
    share: float
    exact: bool


def retrieve(
    asker: "Asker",
    passages: Sequence[Passage],
    *,
    context_tokens: int,
    unfinished: Unfinished | None = None,
    progress: Progress = silent,
) -> list[Retrieved]:
    """The first element that the index has for each cue, decoded; `progress` counts passages.

    What an interrupted evaluation kept is not asked for again.
    """

    def ask(place: int) -> Retrieved:
        hits = asker.ask(passages[place].cue, k=1, context_tokens=context_tokens)
        return Retrieved(hits[0].name, hits[0].match, hits[0].text) if hits else Retrieved("", "none", "")

    kept = unfinished or Unfinished()
    return kept.rows(
        "retrieved", Retrieved, len(passages), lambda places: list(map(ask, places)), progress=progress
    )


def continue_passages(
    host: "Host",
    passages: Sequence[Passage],
    shown: Sequence[Retrieved | None],
    condition: Condition,
    *,
    unfinished: Unfinished | None = None,
    progress: Progress = silent,
) -> list[CompositionSample]:
    """Score every string after its cue, with `shown` before it; whatever is attached to the host is at work.

    Strings that an interrupted evaluation kept are not scored again. `progress` counts passages.
    """

    def score(number: int) -> CompositionSample:
        passage, text = passages[number], shown[number]
        nats, share = _score(host, passage, None if text is None else text.text)
        return CompositionSample(
            passage=number,
            element=passage.element,
            learned=passage.learned,
            condition=condition,
            found="" if text is None else text.element,
            holds=text is not None and holds(text.text, passage.target),
            target=passage.target,
            nats=nats,
            share=share,
            exact=share == 1,
        )

    kept = unfinished or Unfinished()
    return kept.rows(
        f"{condition} strings",
        CompositionSample,
        len(passages),
        lambda places: list(map(score, places)),
        progress=progress,
    )


def others(found: Sequence[Retrieved]) -> list[Retrieved]:
    """For each passage what was found for the next one that found another element; its own where none did."""
    count = len(found)
    return [
        next(
            (
                found[(place + step) % count]
                for step in range(1, count)
                if found[(place + step) % count].element != one.element
            ),
            one,
        )
        for place, one in enumerate(found)
    ]


def holds(text: str, target: str) -> bool:
    """Whether a text has a string, white space aside."""
    return "".join(target.split()) in "".join(text.split())


def prompt_tokens(host: "Host", passage: Passage, shown: Retrieved) -> int:
    """Tokens of a string with its cue and what is shown before it."""
    return len(_shown(host, shown.text)) + len(passage.cue_T) + len(passage.target_T)


def _shown(host: "Host", text: str) -> list[int]:
    return host.encode(f"{text}\n\n")


@torch.no_grad()
def _score(host: "Host", passage: Passage, text: str | None) -> tuple[float, float]:
    before = [] if text is None else _shown(host, text)
    ids_T = torch.tensor([*before, *passage.cue_T, *passage.target_T], device=host.device)
    count = len(passage.target_T)
    made = host.model(input_ids=ids_T[None], use_cache=False, logits_to_keep=count + 1)
    logits_TV = made.logits[0, :-1].float()
    right_T = logits_TV.argmax(-1) == ids_T[-count:]
    return float(F.cross_entropy(logits_TV, ids_T[-count:])), float(right_T.double().mean())
