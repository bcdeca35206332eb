"""The texts of a consolidation: a domain and what must not get worse, each in parts that never meet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from store import Store
from tasks.anneal.params import AnnealParams
from tasks.anneal.population import passages
from tasks.errors import BadCorpus
from tasks.shadows import Domain, HeldParams, ShadowParams, digest_of, part, read_documents, read_domain

if TYPE_CHECKING:
    from tasks.hosts import Host


@dataclass(frozen=True)
class Texts:
    """The domain and the retention texts of some parameters, each in its parts."""

    domain: Domain
    retention: tuple[Domain, ...]

    @property
    def digests(self) -> tuple[str, ...]:
        """What they are made of."""
        return (self.domain.digest, *(text.digest for text in self.retention))

    def probes(self, purpose: str, count: int, length: int) -> Tensor:
        """About `count` probes of a purpose, an equal share from each retention text: (M, T) token ids."""
        share = max(1, round(count / len(self.retention)))
        parts = [passages(getattr(text, f"{purpose}_T"), share, length) for text in self.retention]
        return torch.cat(parts)


def read_texts(store: Store, host: "Host", shadow: ShadowParams, anneal: AnnealParams) -> Texts:
    """Domain and retention texts, parted; raises `BadCorpus` where no retention text is named."""
    retention = read_retention(store, host, anneal, seed=shadow.seed)
    return Texts(read_domain(store, host, shadow), retention)


def read_retention(store: Store, host: "Host", anneal: AnnealParams, *, seed: int) -> tuple[Domain, ...]:
    """The retention texts, parted in an order that `seed` draws; raises `BadCorpus` where none is named."""
    _check_named(anneal)
    parted = [
        part(read_documents(store, source), host.encode, host.end, _share(anneal), train_tokens=0, seed=seed)
        for source in anneal.retention
    ]
    return tuple(parted)


def text_digests(store: Store, shadow: ShadowParams, anneal: AnnealParams) -> tuple[str, ...]:
    """The digests of what `read_texts` reads, which need no host; raises as it does."""
    _check_named(anneal)
    return tuple(digest_of(read_documents(store, source)) for source in (shadow.domain, *anneal.retention))


def _check_named(anneal: AnnealParams) -> None:
    if not anneal.retention:
        raise BadCorpus(
            "no text is named on which the host must not get worse; set anneal.retention, e.g. "
            '\'anneal.retention=[{"corpus": "docs"}]\''
        )


def sealed_parts(texts: Texts, length: int) -> tuple[Tensor, Tensor]:
    """Sealed chunks of `length` token ids: of the domain (N, T), of all retention texts (M, T)."""
    return sealed_chunks([texts.domain], length), sealed_chunks(texts.retention, length)


def sealed_chunks(texts: Sequence[Domain], length: int) -> Tensor:
    """Sealed chunks of `length` token ids of some texts, one after another: (N, T)."""
    return torch.cat([passages(text.sealed_T, len(text.sealed_T) // length, length) for text in texts])


def _share(anneal: AnnealParams) -> HeldParams:
    """What each of several retention texts holds out: its part of the whole, and a passage at least."""
    count = len(anneal.retention)
    sizes = {
        name: max(anneal.passage_tokens, getattr(anneal.held, name) // count)
        for name in ("selection_tokens", "guard_tokens", "sealed_tokens")
    }
    return anneal.held.model_copy(update=sizes)
