"""The return interfaces: how the result of a skill is attached to the output slots of a core.

Output slot ``j`` holds token ``P + j`` of a sequence whose prompt has ``P`` tokens, so node ``P + j - 1``
predicts it. The result exists once the prompt was read: its availability boundary is node ``P - 1``.

- *positional*: at each slot of the rendered result, an observation of the token that belongs there; slots
  beyond the result have none. Nothing observes the end: the core has to stop by itself.
- *combined*: the same, and an observation of the token's characters beside it.
- *global*: one vector, the codes of all slots side by side, repeated at every slot. It holds as much as the
  token observations do; only the correspondence of slots is missing.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.assembly import SKILL_CHARACTERS, SKILL_RESULT, SKILL_TOKENS, Attachment
from tasks.codec import CODE_BITS, Binary16
from tasks.corpus import Tokenizer
from tasks.skills.params import TokenParams

SEPARATOR = "\n"
"""Ends a prompt."""
_BYTE = 8


class Interface(StrEnum):
    """How a result is returned to the core."""

    NONE = "none"
    POSITIONAL = "positional"
    COMBINED = "combined"
    GLOBAL = "global"


KINDS: dict[Interface, tuple[str, ...]] = {
    Interface.NONE: (),
    Interface.POSITIONAL: (SKILL_TOKENS,),
    Interface.COMBINED: (SKILL_TOKENS, SKILL_CHARACTERS),
    Interface.GLOBAL: (SKILL_RESULT,),
}
"""Kinds of the elements by which each interface returns a result."""


def source_widths(params: TokenParams) -> dict[str, int]:
    """Widths of the source states of each kind of skill element."""
    return {
        SKILL_TOKENS: CODE_BITS,
        SKILL_CHARACTERS: _BYTE * params.characters,
        SKILL_RESULT: CODE_BITS * params.slots,
    }


class Renderer:
    """Renders numbers and prompts as tokens, and results as attachments."""

    def __init__(self, tokenizer: Tokenizer, identity: Binary16, params: TokenParams) -> None:
        self.tokenizer = tokenizer
        self.identity = identity
        self.params = params
        pieces = [tokenizer.pieces([token])[0] for token in range(tokenizer.vocab_size)]
        self.characters_VC = torch.stack([character_bits(piece, params.characters) for piece in pieces])

    def prompt(self, text: str) -> NDArray[np.int64]:
        """Token ids of a prompt with its end."""
        return self.tokenizer.encode(text + SEPARATOR).astype(np.int64)

    def answer(self, value: int) -> NDArray[np.int64]:
        """Token ids of a result, without an end token; never more than there are slots."""
        return self.tokenizer.encode(str(value)).astype(np.int64)

    def text(self, ids: NDArray[np.int64]) -> str:
        """The text of token ids."""
        return self.tokenizer.decode(ids)

    def attach(
        self,
        interface: Interface | Sequence[Interface],
        results: Sequence[NDArray[np.int64] | None],
        prompt_lengths: Sequence[int],
    ) -> tuple[Attachment, ...]:
        """Attach rendered results (token ids, None where there is none) to the rows of a batch.

        The whole history is attached, every slot at once: what training shows and what decoding keeps.
        """
        each = [interface] * len(results) if isinstance(interface, Interface) else list(interface)
        parts = []
        for kind in (SKILL_TOKENS, SKILL_CHARACTERS, SKILL_RESULT):
            states = {
                row: self._states(kind, ids)
                for row, (shown, ids) in enumerate(zip(each, results, strict=True))
                if kind in KINDS[shown] and ids is not None
            }
            if states:
                parts.append(_attachment(kind, states, prompt_lengths))
        return tuple(parts)

    def whole(self, ids: NDArray[np.int64]) -> Tensor:
        """The global vector (slots * 16,): codes of all slots side by side, zeros beyond the result."""
        vector = torch.zeros(self.params.slots, CODE_BITS)
        vector[: len(ids)] = self.identity.code(torch.from_numpy(ids))
        return vector.flatten()

    def _states(self, kind: str, ids: NDArray[np.int64]) -> Tensor:
        """The source states of a result's elements of one kind, slot after slot."""
        if kind == SKILL_TOKENS:
            return self.identity.code(torch.from_numpy(ids))
        if kind == SKILL_CHARACTERS:
            return self.characters_VC[torch.from_numpy(ids)]
        return self.whole(ids).expand(self.params.slots, -1)


def _attachment(kind: str, states: Mapping[int, Tensor], prompt_lengths: Sequence[int]) -> Attachment:
    """Elements of one kind from the states (slots, U) of some rows; slot ``j`` has node ``P - 1 + j``."""
    count_R = torch.tensor([len(part) for part in states.values()])
    row_E = torch.tensor(list(states)).repeat_interleave(count_R)
    slot_E = torch.cat([torch.arange(len(part)) for part in states.values()])
    boundary_E = torch.tensor(prompt_lengths, dtype=torch.int64)[row_E] - 1
    source_EU = torch.cat(list(states.values()))
    return Attachment(kind, source_EU, row_E, boundary_E + slot_E, boundary_E, torch.ones(len(row_E)))


def character_bits(text: str, characters: int) -> Tensor:
    """The first bytes of a text as float32 (8 * characters,): bits in {-1, +1}, lowest first, then zeros."""
    data = torch.tensor(list(text.encode("utf-8")[:characters]), dtype=torch.int64)
    bits = torch.zeros(characters, _BYTE)
    bits[: len(data)] = ((data[:, None] >> torch.arange(_BYTE)) & 1).to(torch.float32) * 2 - 1
    return bits.flatten()
