"""What a shadow learned of its text: by its element's record, whatever parameters say now."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from pydantic import ValidationError
from torch import Tensor

from store import Ref, Row, Store
from store.errors import CellarError
from tasks.corpus import Document
from tasks.errors import BadPayload
from tasks.shadows.documents import digest_of
from tasks.shadows.params import ShadowParams
from tasks.shadows.shadow import Shadow
from tasks.shadows.text import part
from tasks.shadows.writing import chunks_of, steps_kept

if TYPE_CHECKING:
    from tasks.hosts import Host


def learned_tokens(
    store: Store, host: "Host", ref: Ref, shadow: Shadow, documents: Sequence[Document]
) -> Tensor:
    """The token ids (T, int64) of `documents` whose steps are in a shadow that was written from them.

    They are parted as the record of the written shadow says, and end where its stream did. Raises
    `BadPayload` where `documents` are another text than the shadow's, or the record does not say how they
    were parted.
    """
    if digest_of(documents) != shadow.document:
        raise BadPayload(f"{ref} was written from another text")
    params = _writing_of(store, ref)
    tokens = params.chunks * params.chunk_tokens
    domain = part(documents, host.encode, host.end, params.held, train_tokens=tokens, seed=params.seed)
    return torch.cat([domain.train_T[:0], *chunks_of(domain.train_T, params)[: steps_kept(shadow)]])


def _writing_of(store: Store, ref: Ref) -> ShadowParams:
    """The parameters that a shadow was written with, itself or the one that it was consolidated from."""
    row = store.catalog().get(ref.version)
    try:
        if row is not None and "written" in row.provenance:
            row = _written(store, row)
        recorded = {} if row is None else dict(row.provenance["params"])
        recorded.pop("dtype", None)
        return ShadowParams.model_validate(recorded)
    except (LookupError, TypeError, ValueError, ValidationError, CellarError) as error:
        raise BadPayload(
            f"{ref} does not say with which parameters it was written; write it again"
        ) from error


def _written(store: Store, row: Row) -> Row:
    wanted = Ref.parse(row.provenance["written"])
    written = store.catalog().get(wanted.version)
    if written is None or written.ref != wanted:
        raise LookupError(wanted)
    return written
