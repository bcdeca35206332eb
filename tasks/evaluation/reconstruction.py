"""What memories read back as, beside the documents they stand for: for a reader's eyes, not for figures."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.retrieval import Readout

DOCUMENTS = 6
TOKENS = 256

Decode = Callable[[NDArray[np.int64]], str]


def reconstructions(
    readout: Readout, texts: Mapping[str, NDArray[np.uint16]], decode: Decode
) -> list[dict[str, Any]]:
    """The beginnings of the documents that were read worst: decoded tokens, each with whether it is right.

    `token_recall` is over the whole document. Ties go to the name that sorts first.
    """
    shares = {}
    for name, ids in texts.items():
        if name in readout.row_of:
            read = readout.tokens(readout.row_of[name])
            shares[name] = float((read == ids).mean())
    worst = sorted(shares, key=lambda name: (shares[name], name))[:DOCUMENTS]
    return [
        {
            "document": name,
            "token_recall": shares[name],
            "tokens": _marked(readout.tokens(readout.row_of[name]), texts[name], decode),
        }
        for name in worst
    ]


def _marked(read: NDArray[np.uint16], ids: NDArray[np.uint16], decode: Decode) -> list[list[Any]]:
    """Runs of the first tokens that are right or wrong together, as [text, right]."""
    right = read[:TOKENS] == ids[:TOKENS]
    edges = [0, *(np.flatnonzero(right[1:] != right[:-1]) + 1).tolist(), len(right)]
    return [
        [decode(read[start:end].astype(np.int64)), bool(right[start])]
        for start, end in pairwise(edges)
        if end > start
    ]
