"""The texts of a consolidation: a domain and what must not get worse, each in parts that never meet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor

from store import Store
from tasks.anneal.cards import beginning_of
from tasks.anneal.consolidation import searched_layers
from tasks.anneal.params import AnnealParams
from tasks.anneal.population import passages
from tasks.anneal.sources import retention_sources
from tasks.shadows import (
    Domain,
    HeldParams,
    ShadowParams,
    check_length,
    chosen_layers,
    part,
    read_documents,
    read_domain,
)

if TYPE_CHECKING:
    from tasks.hosts import Host

Purpose = Literal["selection", "guard"]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)


@dataclass(frozen=True)
class Texts:
    """The domain and the retention texts of some parameters, each in its parts."""

    domain: Domain
    retention: tuple[Domain, ...]

    @property
    def digests(self) -> tuple[str, ...]:
        """What they are made of."""
        return (self.domain.digest, *(text.digest for text in self.retention))

    def searched(self, purpose: Purpose, anneal: AnnealParams) -> tuple[Tensor, Tensor]:
        """Passages of the domain (N, T) and probes (M, T) on which alphas are scored, token ids.

        About as many probes as passages, an equal share from each retention text. The guard takes twice as
        many, since it decides once and is not searched. Raises `TooLittleText` where a text has none.
        """
        count, length = anneal.passages * (2 if purpose == "guard" else 1), anneal.passage_tokens
        share = max(1, round(count / len(self.retention)))
        probes = [passages(getattr(text, f"{purpose}_T"), share, length) for text in self.retention]
        return passages(getattr(self.domain, f"{purpose}_T"), count, length), torch.cat(probes)

    def check(self, anneal: AnnealParams, *, sealed: bool = False) -> None:
        """Raise `TooLittleText` where a text is too short for a search, with `sealed` for its report too."""
        for purpose in PURPOSES:
            self.searched(purpose, anneal)
        if sealed:
            sealed_parts(self, anneal.sealed.chunk_tokens)


def read_texts(store: Store, host: "Host", shadow: ShadowParams, anneal: AnnealParams) -> Texts:
    """Domain and retention texts, parted; raises `BadCorpus` where no retention text is named."""
    retention = read_retention(store, host, anneal, seed=shadow.seed)
    return Texts(read_domain(store, host, shadow), retention)


def read_retention(store: Store, host: "Host", anneal: AnnealParams, *, seed: int) -> tuple[Domain, ...]:
    """The retention texts, parted in an order that `seed` draws; raises `BadCorpus` where none is named."""
    parted = [
        part(read_documents(store, source), host.encode, host.end, _share(anneal), train_tokens=0, seed=seed)
        for source in retention_sources(anneal)
    ]
    return tuple(parted)


def check_texts(
    store: Store, host: "Host", shadows: Sequence[ShadowParams], anneal: AnnealParams, *, sealed: bool = False
) -> None:
    """Raise what the search of these shadows' alphas would, so that it is said before anything is written.

    All have the seed of the first. With `sealed` what their report needs is looked at as well. Raises
    `BadCorpus` and `ElementNotFound` for texts that are not there, `TooLittleText` for those too short for
    their purposes, and `UnfitHost` for layers that the host lacks or that cannot be clamped, and for lengths
    that it does not read.
    """
    check_lengths(host, anneal, sealed=sealed)
    for shadow in shadows:
        check_length(host, "shadow.chunk_tokens", shadow.chunk_tokens)
    retention = read_retention(store, host, anneal, seed=shadows[0].seed)
    for shadow in shadows:
        searched_layers(anneal, chosen_layers(host, shadow.layers))
        Texts(read_domain(store, host, shadow), retention).check(anneal, sealed=sealed)


def check_lengths(host: "Host", anneal: AnnealParams, *, sealed: bool = False) -> None:
    """Raise `UnfitHost` for passages, with `sealed` for chunks and cards, longer than the host reads."""
    check_length(host, "anneal.passage_tokens", anneal.passage_tokens)
    if sealed:
        check_length(host, "anneal.sealed.chunk_tokens", anneal.sealed.chunk_tokens)
        if anneal.sealed.cards:
            card = beginning_of(anneal.sealed.chunk_tokens) + anneal.sealed.card_tokens
            check_length(host, "a card", card, "lower anneal.sealed.card_tokens")


def sealed_parts(texts: Texts, length: int) -> tuple[Tensor, Tensor]:
    """Sealed chunks of `length` token ids: of the domain (N, T), of all retention texts (M, T)."""
    return sealed_chunks([texts.domain], length), sealed_chunks(texts.retention, length)


def sealed_counts(shadow: ShadowParams, anneal: AnnealParams) -> tuple[int, int]:
    """How many chunks `sealed_parts` gives of the domain and of the retention texts of some parameters."""
    length = anneal.sealed.chunk_tokens
    retention = len(anneal.retention) * (_share(anneal).sealed_tokens // length)
    return shadow.held.sealed_tokens // length, retention


def sealed_chunks(texts: Sequence[Domain], length: int) -> Tensor:
    """Sealed chunks of `length` token ids of some texts, one after another: (N, T)."""
    setting = "anneal.sealed.chunk_tokens"
    return torch.cat(
        [passages(text.sealed_T, len(text.sealed_T) // length, length, setting=setting) for text in texts]
    )


def _share(anneal: AnnealParams) -> HeldParams:
    """What each of several retention texts holds out: its part of the whole, and a passage at least."""
    count = max(1, len(anneal.retention))
    sizes = {
        name: max(anneal.passage_tokens, getattr(anneal.held, name) // count)
        for name in ("selection_tokens", "guard_tokens", "sealed_tokens")
    }
    return anneal.held.model_copy(update=sizes)
