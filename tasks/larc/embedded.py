"""Rows of questions with the host's embeddings, kept while they fit: what does not depend on any factors."""

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor

from tasks.errors import BadQuestion
from tasks.larc.question import MOST_TOKENS, Question, Tree
from tasks.larc.substrate import Substrate

_KEPT_BYTES = 64 * 1024**2


class EmbeddedRows:
    """Trees of questions and their embeddings before any correction; the least recently used leave first.

    What a correction has passed through is never kept: it depends on the factors (LARC 6).
    """

    def __init__(self, host: Substrate, *, most_bytes: int = _KEPT_BYTES) -> None:
        self._host = host
        self._embeddings = host.model.get_input_embeddings()
        self._most_places = _depth(host.model.config)
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Question, tuple[Tree, Tensor]] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def lay(self, question: Question) -> tuple[Tree, Tensor]:
        """The tree of a question and the embeddings of its T tokens (T, D), in the host's dtype.

        Raises `BadQuestion` for a token that the host does not have, and for a sequence longer than it reads.
        """
        if (kept := self._kept.get(question)) is not None:
            self._kept.move_to_end(question)
            return kept
        tree = Tree.of(question)
        self._check(tree)
        with torch.no_grad():
            embeds_TD = self._embeddings(torch.from_numpy(tree.ids_T).to(self._host.device)).detach()
        self._kept[question] = (tree, embeds_TD)
        self.bytes += _size(tree, embeds_TD)
        while self.bytes > self._most_bytes and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self.bytes -= _size(*dropped)
        return tree, embeds_TD

    def _check(self, tree: Tree) -> None:
        vocabulary = self._embeddings.num_embeddings
        for token in (
            min(int(tree.ids_T.min()), int(tree.targets_JL.min())),
            max(int(tree.ids_T.max()), int(tree.targets_JL.max())),
        ):
            if not 0 <= token < vocabulary:
                raise BadQuestion(
                    f"a question holds token {token}; the host has {vocabulary:,}: use its own tokenizer"
                )
        places = int(tree.positions_T.max()) + 1
        if places > self._most_places:
            raise BadQuestion(
                f"a question is {places:,} tokens deep; the host reads {self._most_places:,}: shorten it"
            )


def _depth(config: Any) -> int:
    """How long a sequence the host reads whole: a tree's mask knows no sliding window."""
    text = config.get_text_config()
    limits = [getattr(text, "max_position_embeddings", None)]
    if getattr(text, "use_sliding_window", True):
        limits.append(getattr(text, "sliding_window", None))
    return min((limit for limit in limits if isinstance(limit, int)), default=MOST_TOKENS)


def _size(tree: Tree, embeds_TD: Tensor) -> int:
    arrays = tree.sees_TT.nbytes + tree.scored_JL.nbytes + tree.targets_JL.nbytes
    return arrays + 16 * len(tree) + embeds_TD.numel() * embeds_TD.element_size()
