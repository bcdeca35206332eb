"""The report shows what was read worst, token by token, with every wrong token marked."""

import numpy as np

from tasks.corpus import Tokenizer
from tasks.evaluation.reconstruction import DOCUMENTS, reconstructions
from tasks.retrieval import DecodedMemory, Readout


def readout_of(texts: dict[str, np.ndarray]) -> Readout:
    memories = [
        DecodedMemory(name=name, version="0" * 64, tokens_L=ids, key_C=np.zeros(4, np.float32))
        for name, ids in sorted(texts.items())
    ]
    return Readout.of(memories)


def test_the_worst_documents_come_first_with_their_wrong_tokens(
    texts: dict[str, np.ndarray], tokenizer: Tokenizer
) -> None:
    read = {name: ids.copy() for name, ids in texts.items()}
    worst = sorted(texts)[7]
    read[worst][[3, 10]] = [5, 6]
    shown = reconstructions(readout_of(read), texts, lambda ids: tokenizer.decode(ids))
    assert len(shown) == DOCUMENTS
    first = shown[0]
    assert first["document"] == worst
    assert first["token_recall"] == 1 - 2 / len(texts[worst])
    assert [n for n, (_, right) in enumerate(first["tokens"]) if not right] == [3, 10]
    assert all(right for entry in shown[1:] for _, right in entry["tokens"])


def test_the_pieces_of_a_document_join_to_its_decoded_text(tokenizer: Tokenizer) -> None:
    text = "naïve Größe 🙂 λ"
    ids = tokenizer.encode(text)
    [shown] = reconstructions(readout_of({"memory/a": ids}), {"memory/a": ids}, lambda i: tokenizer.decode(i))
    assert "".join(piece for piece, _ in shown["tokens"]) == text
