"""What the fingerprint of a composition consists of: no host is needed to say so."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from store import Recipe, Ref, Snapshot
from tasks.composition.params import CompositionParams
from tasks.corpus import Document
from tasks.shadows import digest_of

if TYPE_CHECKING:
    from tasks.hosts import HostIdentity

ROUNDS = 6
"""How often every string is taken in hand: it is retrieved for, then continued in five conditions."""


def composition_recipe(
    host: "HostIdentity",
    refs: Sequence[Ref],
    documents: Sequence[Document],
    params: CompositionParams,
    *,
    snapshot: str,
    corpus: Sequence[Ref],
) -> Recipe:
    """How strings of a snapshot's documents, those of the shards `corpus`, are continued with shadows.

    `documents` are those that tell strings apart, or none.
    """
    options = {
        **params.identity(),
        "dtype": str(host.dtype).removeprefix("torch."),
        "learned": "as the shadows record" if documents else None,
    }
    inputs = (
        host.ref.version,
        *(ref.version for ref in refs),
        snapshot,
        *(one.version for one in sorted(corpus, key=lambda ref: ref.name)),
        *((digest_of(documents),) if documents else ()),
    )
    return Recipe("composition.evaluate/1", options, inputs)


def composition_work(params: CompositionParams, snapshot: Snapshot) -> int:
    """Strings over all rounds at most, as progress counts them: a document gives one."""
    return ROUNDS * min(params.passages, snapshot.kinds.get("memory", 0))
