"""Questions in physical batches: sorted by length, so that little is padding, within a budget of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tasks.larc.question import Question, Tree


@dataclass(frozen=True)
class Batch:
    """The rows of n questions, padded to the longest (T places)."""

    rows_n: list[int]
    """Which of the questions these are."""
    positions_nT: Tensor
    mask_n1TT: Tensor
    """Added to attention scores: 0 where a token sees another, the least number of the dtype elsewhere."""
    scored_places_P: Tensor
    """Places of the flattened rows (n T) whose next token is scored."""
    scored_nJL: Tensor
    """Index into those places for token l of answer j."""
    targets_nJL: Tensor
    weights_nJL: Tensor
    """float32: 1 / length of the answer on its tokens, 0 behind its end."""


def order(questions: Sequence[Question], sizes: Sequence[int], owners: Sequence[int]) -> list[int]:
    """The questions by length, then content, then owner: equal sets give equal batches in any order."""

    def key(row: int) -> tuple[int, tuple[int, ...], tuple[tuple[int, ...], ...], int]:
        question = questions[row]
        return sizes[row], question.prompt_ids, question.candidates, owners[row]

    return sorted(range(len(questions)), key=key)


def cut(ordered: Sequence[int], sizes: Sequence[int], tokens: int) -> list[list[int]]:
    """Cut rows in ascending length into batches of at most `tokens` places, one row at least."""
    batches: list[list[int]] = []
    for row in ordered:
        if batches and (len(batches[-1]) + 1) * sizes[row] <= tokens:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def lay(rows_n: Sequence[int], trees: Sequence[Tree], dtype: torch.dtype, device: torch.device) -> Batch:
    """Put the trees of these rows beside each other, as one batch of the host's dtype on its device."""
    count, longest = len(trees), max(len(tree) for tree in trees)
    widest = max(tree.scored_JL.shape[1] for tree in trees)
    answers = len(trees[0].lengths_J)
    positions_nT = np.zeros((count, longest), np.int64)
    sees_nTT = np.zeros((count, longest, longest), bool)
    # Padding sees itself: a row of the attention that sees nothing has no softmax.
    sees_nTT[:, np.arange(longest), np.arange(longest)] = True
    scored_nJL = np.zeros((count, answers, widest), np.int64)
    targets_nJL = np.zeros_like(scored_nJL)
    weights_nJL = np.zeros(scored_nJL.shape, np.float32)
    places: list[np.ndarray] = []
    before = 0
    for row, tree in enumerate(trees):
        size, width = len(tree), tree.scored_JL.shape[1]
        positions_nT[row, :size] = tree.positions_T
        sees_nTT[row, :size, :size] = tree.sees_TT
        scored_nJL[row, :, :width] = tree.scored_JL + before
        targets_nJL[row, :, :width] = tree.targets_JL
        inside_JL = np.arange(width) < tree.lengths_J[:, None]
        weights_nJL[row, :, :width] = inside_JL / tree.lengths_J[:, None]
        places.append(tree.predictors_P + row * longest)
        before += len(tree.predictors_P)
    sees_n1TT = torch.from_numpy(sees_nTT).to(device)[:, None]
    mask_n1TT = torch.zeros(sees_n1TT.shape, dtype=dtype, device=device)
    mask_n1TT.masked_fill_(~sees_n1TT, torch.finfo(dtype).min)
    return Batch(
        list(rows_n),
        torch.from_numpy(positions_nT).to(device),
        mask_n1TT,
        torch.from_numpy(np.concatenate(places)).to(device),
        torch.from_numpy(scored_nJL).to(device),
        torch.from_numpy(targets_nJL).to(device),
        torch.from_numpy(weights_nJL).to(device),
    )
