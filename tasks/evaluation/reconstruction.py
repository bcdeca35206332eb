"""What memories read back as, beside the documents they stand for: for a reader's eyes, not for figures."""

from collections.abc import Callable, Mapping
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
    """The first tokens as [text, right]; a character spread over several tokens belongs to the last."""
    pieces: list[list[Any]] = []
    shown = ""
    for count in range(1, len(read[:TOKENS]) + 1):
        text = decode(read[:count].astype(np.int64))
        unfinished = text.endswith("\ufffd") and count < len(read)
        pieces.append(["" if unfinished else text[len(shown) :], bool(read[count - 1] == ids[count - 1])])
        shown = shown if unfinished else text
    return pieces
