"""What packed trees are held against: four padded rows an episode, prompt and one candidate in each.

The same host, factors, loss and head (answer positions only), without a tree: the prompt is read once for
every candidate. Several episodes may share a physical batch; each row then selects its own factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.larc import Question, SlowState
from tasks.larc.learner import corrected
from tasks.larc.substrate import Substrate


@dataclass(frozen=True)
class Rows:
    """The padded rows of some episodes (R = episodes times candidates), with their embeddings cached."""

    embeds_RTD: Tensor
    mask_RT: Tensor
    positions_RT: Tensor
    places_P: Tensor
    targets_P: Tensor
    row_P: Tensor
    lengths_R: Tensor
    candidates: int

    @property
    def places(self) -> int:
        """Tokens that are read, with padding."""
        return self.mask_RT.numel()


def pad(host: Substrate, questions: Sequence[Question]) -> Rows:
    """Lay out questions with one row for each candidate; its last token is scored and not read."""
    sequences = [(question.prompt_ids, answer) for question in questions for answer in question.candidates]
    longest = max(len(prompt) + len(answer) - 1 for prompt, answer in sequences)
    ids_RT = torch.zeros(len(sequences), longest, dtype=torch.int64)
    mask_RT = torch.zeros_like(ids_RT)
    places, targets, rows = [], [], []
    for row, (prompt, answer) in enumerate(sequences):
        read = (*prompt, *answer[:-1])
        ids_RT[row, : len(read)] = torch.tensor(read)
        mask_RT[row, : len(read)] = 1
        places += [row * longest + len(prompt) - 1 + place for place in range(len(answer))]
        targets += answer
        rows += [row] * len(answer)
    with torch.no_grad():
        embeds_RTD = host.model.get_input_embeddings()(ids_RT.to(host.device))
    moved = (
        torch.as_tensor(values, device=host.device)
        for values in (mask_RT, (mask_RT.cumsum(-1) - 1).clamp_min(0), places, targets, rows)
    )
    lengths_R = torch.tensor([len(answer) for _, answer in sequences], device=host.device)
    return Rows(embeds_RTD, *moved, lengths_R, len(questions[0].candidates))


def padded_energies(host: Substrate, rows: Rows, A_FrD: Tensor, B_FDr: Tensor) -> Tensor:
    """Mean log probability per token (F, J) float32, the rows of episode f read with factors f."""
    owners_R = torch.arange(len(A_FrD), device=host.device).repeat_interleave(rows.candidates)
    hidden_RTD = host.model.get_decoder()(
        inputs_embeds=corrected(
            rows.embeds_RTD, A_FrD.index_select(0, owners_R), B_FDr.index_select(0, owners_R)
        ),
        attention_mask=rows.mask_RT,
        position_ids=rows.positions_RT,
        use_cache=False,
    ).last_hidden_state
    scored_PD = hidden_RTD.flatten(0, 1).index_select(0, rows.places_P)
    logged_PV = torch.log_softmax(host.model.get_output_embeddings()(scored_PD).float(), -1)
    logged_P = logged_PV.gather(1, rows.targets_P[:, None])[:, 0]
    sums_R = torch.zeros(len(owners_R), device=host.device).index_add(0, rows.row_P, logged_P)
    return (sums_R / rows.lengths_R).view(len(A_FrD), rows.candidates)


def padded_episodes(
    host: Substrate,
    slow: SlowState,
    rows: Rows,
    costs_FJ: Tensor,
    *,
    steps: int,
    rate: float,
) -> Tensor:
    """Energies (F, J) that F episodes read after `steps` of SGD on the expected cost."""
    A_FrD = slow.A_rD.to(host.device).repeat(len(costs_FJ), 1, 1)
    B_FDr = slow.B_Dr.to(host.device).repeat(len(costs_FJ), 1, 1)
    for _ in range(steps):
        A_FrD.requires_grad_()
        B_FDr.requires_grad_()
        energies_FJ = padded_energies(host, rows, A_FrD, B_FDr)
        losses_F = (torch.softmax(energies_FJ, -1) * costs_FJ).sum(-1)
        by_A, by_B = torch.autograd.grad(losses_F.sum(), (A_FrD, B_FDr))
        A_FrD, B_FDr = (A_FrD - rate * by_A).detach(), (B_FDr - rate * by_B).detach()
    with torch.no_grad():
        return padded_energies(host, rows, A_FrD, B_FDr)
