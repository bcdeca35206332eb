"""Finding elements by a visible text that has no place in any document (FEM-ASM, question-only protocol)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.corpus import Tokenizer
from tasks.retrieval.hybrid import Hybrid, Signals
from tasks.retrieval.index import Index


@dataclass(frozen=True)
class TextSearch:
    """Texts -> names of elements, by the hybrid of words, characters, charts and dense keys."""

    hybrid: Hybrid

    @classmethod
    def over(
        cls, index: Index, tokenizer: Tokenizer, *, scrambled: int, generator: np.random.Generator
    ) -> "TextSearch":
        """The search over an index, its signals weighed on so many scrambled sentences of what it decodes."""
        return cls(Hybrid.fit(Signals.of(index, tokenizer), asked=scrambled, generator=generator))

    def elements(self, asked: Sequence[str], k: int) -> list[list[str]]:
        """The names of the k best elements for each text, best first; equal scores keep the name order.

        A text without a visible character finds nothing.
        """
        visible = [row for row, text in enumerate(asked) if text.strip()]
        answers: list[list[str]] = [[] for _ in asked]
        if visible:
            names = self.hybrid.signals.index.readout.names
            # Rounded, because equal sums in another order differ in their last bits.
            score_QE = np.round(self.hybrid.scores([asked[row] for row in visible]), 9)
            order_QE = np.argsort(-score_QE, axis=1, kind="stable")[:, :k]
            for row, best in zip(visible, order_QE.tolist(), strict=True):
                answers[row] = [names[element] for element in best]
        return answers
