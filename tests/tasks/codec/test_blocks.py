"""Cutting documents into blocks and groups."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.codec import CodecArchitecture, blocks, group_documents

IDS = st.lists(st.integers(1, 65_535), max_size=70).map(lambda ids: np.array(ids, dtype=np.uint16))


@settings(deadline=None)
@given(IDS, st.integers(2, 16))
def test_blocks_hold_every_token_once_in_order_and_padding_is_masked(ids: np.ndarray, width: int) -> None:
    tokens_NT, mask_NT = blocks(ids, width)

    assert tokens_NT.shape == mask_NT.shape == (-(-len(ids) // width), width)
    assert tokens_NT.dtype == torch.int64
    assert tokens_NT[mask_NT].tolist() == ids.tolist()
    assert not tokens_NT[~mask_NT].any()


@settings(deadline=None)
@given(st.lists(IDS, max_size=5))
def test_groups_keep_documents_apart_and_give_their_blocks_back(documents: list[np.ndarray]) -> None:
    architecture = CodecArchitecture(block_tokens=8, cell_width=8, parent_spans=(2, 4))

    groups = group_documents(documents, architecture)

    assert groups.tokens_NGT.shape[1:] == (4, 8)
    for number, ids in enumerate(documents):
        tokens_BT, mask_BT = groups.select(torch.nonzero(groups.document_N == number).flatten())
        assert tokens_BT[mask_BT].tolist() == ids.tolist()
