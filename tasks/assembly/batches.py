"""Training batches of the core, each a pure function of (seed, step).

Language batches are windows of the even shards' token stream. Attachment batches are windows of train-split
documents with evidence attached at aligned positions; the evidence is right or another document's, forced
or weighed by the system, read from stored cells or from raw tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.assembly.agreement import agreement_weight
from tasks.assembly.attachment import MEMORY, TEXT, Attachment, aligned
from tasks.assembly.params import AssemblyParams
from tasks.assembly.readout import CellTable, TokenTable
from tasks.codec import Binary16
from tasks.errors import TooLittleText


@dataclass(frozen=True)
class Batch:
    """Token ids tokens_BL int64 (the core reads all but the last, predicts all but the first) and
    attachments.
    """

    tokens_BL: Tensor
    attachments: tuple[Attachment, ...] = ()

    def rows(self, start: int, stop: int) -> "Batch":
        """The rows `start .. stop` as a batch of their own."""
        parts = tuple(attachment.rows(start, stop) for attachment in self.attachments)
        return Batch(self.tokens_BL[start:stop], parts)


class LanguageStream:
    """Documents joined by an end token, cut at random places."""

    def __init__(self, documents: Sequence[NDArray[np.integer]], *, end: int, params: AssemblyParams) -> None:
        joined = [np.append(np.asarray(ids, np.int64), end) for ids in documents]
        self.ids_M = np.concatenate(joined) if joined else np.zeros(0, np.int64)
        self.params = params
        if len(self.ids_M) <= params.language_tokens:
            raise TooLittleText(
                f"the language stream has {len(self.ids_M)} tokens, a sequence needs "
                f"{params.language_tokens + 1}; ingest more text"
            )

    def counts(self, vocab_size: int) -> Tensor:
        """How often each token occurs, int64 (V,)."""
        return torch.bincount(torch.from_numpy(self.ids_M), minlength=vocab_size)

    def batch(self, step: int) -> Batch:
        """The language batch of a step."""
        p = self.params
        rng = np.random.default_rng([p.seed, 0, step])
        start_B = rng.integers(0, len(self.ids_M) - p.language_tokens, p.language_rows)
        tokens_BL = self.ids_M[start_B[:, None] + np.arange(p.language_tokens + 1)]
        return Batch(torch.from_numpy(tokens_BL))


class AttachmentRows:
    """Windows of documents with evidence of a chosen kind.

    `cells` and `text` describe the same documents in the same order; documents shorter than a window are
    left out.
    """

    def __init__(
        self, cells: CellTable, text: TokenTable, identity: Binary16, params: AssemblyParams
    ) -> None:
        self.cells = cells
        self.text = text
        self.identity = identity
        self.params = params
        self.window = params.cue_tokens + params.target_tokens
        lengths_N = torch.minimum(cells.lengths_N, text.lengths_N)
        self.usable = np.flatnonzero(lengths_N.numpy() >= self.window)
        self.lengths = lengths_N.numpy()
        if len(self.usable) < 2:
            raise TooLittleText(
                f"{len(self.usable)} elements of a split reach {self.window} tokens, training needs 2; "
                "build more memories or shorten cue_tokens"
            )

    def batch(self, step: int) -> Batch:
        """The attachment batch of a training step, its evidence drawn from the mix."""
        p = self.params
        rng = np.random.default_rng([p.seed, 1, step])
        shares = np.array(p.evidence.shares())
        names = np.array(list(type(p.evidence).model_fields))
        shown_B = rng.choice(names, p.attachment_rows, p=shares / shares.sum())
        return self._build(rng, shown_B)

    def fixed(self, shown: str, rows: int, seed: int) -> Batch:
        """`rows` windows that all show one kind of evidence ("none" shows none); same windows for every
        kind.
        """
        return self._build(np.random.default_rng([seed, 2]), np.array([shown] * rows))

    def _build(self, rng: np.random.Generator, shown_B: NDArray[np.str_]) -> Batch:
        rows = len(shown_B)
        own_B = rng.choice(self.usable, rows)
        shift_B = rng.integers(1, len(self.usable), rows)
        other_B = self.usable[(np.searchsorted(self.usable, own_B) + shift_B) % len(self.usable)]
        own_start_B = rng.integers(0, self.lengths[own_B] - self.window + 1)
        other_start_B = rng.integers(0, self.lengths[other_B] - self.window + 1)
        is_wrong_B = np.char.find(shown_B, "wrong") >= 0
        document_B = torch.from_numpy(np.where(is_wrong_B, other_B, own_B))
        start_B = torch.from_numpy(np.where(is_wrong_B, other_start_B, own_start_B))
        tokens_BL, _ = self.text.tokens(torch.from_numpy(own_B), torch.from_numpy(own_start_B), self.window)
        parts = (
            self._memory(shown_B, tokens_BL, document_B, start_B),
            self._text(shown_B, document_B, start_B),
        )
        return Batch(tokens_BL, tuple(part for part in parts if len(part)))

    def _memory(
        self, shown_B: NDArray[np.str_], tokens_BL: Tensor, document_B: Tensor, start_B: Tensor
    ) -> Attachment:
        p = self.params
        slots_BLS, valid_BL = self.cells.slots(document_B, start_B, self.window)
        weight_B = torch.from_numpy(np.isin(shown_B, ["right", "wrong"]).astype(np.float32))
        decoded_BC = self.cells.tokens(slots_BLS[:, : p.cue_tokens]).numpy()
        prompt_BC = tokens_BL[:, : p.cue_tokens].numpy()
        for row in np.flatnonzero(np.isin(shown_B, ["right_weighed", "wrong_weighed"])):
            weight_B[row] = agreement_weight(
                decoded_BC[row], prompt_BC[row], margin=p.architecture.agreement_margin
            )
        return aligned(MEMORY, slots_BLS, valid_BL, weight_B)

    def _text(self, shown_B: NDArray[np.str_], document_B: Tensor, start_B: Tensor) -> Attachment:
        tokens_BL, valid_BL = self.text.tokens(document_B, start_B, self.window)
        weight_B = torch.from_numpy(np.isin(shown_B, ["text", "text_wrong"]).astype(np.float32))
        return aligned(TEXT, self.identity.code(tokens_BL), valid_BL, weight_B)
