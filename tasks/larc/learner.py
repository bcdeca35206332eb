"""The learner: energies of whole candidates, read through a frozen host that low-rank factors correct.

T(h) = h + B A h on every token (LARC 2.1), on the input embeddings or before a decoder layer.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tasks.errors import BadQuestion, UnfitHost
from tasks.larc.attention import WideBackward
from tasks.larc.batch import Batch, cut, lay, order
from tasks.larc.embedded import EmbeddedRows
from tasks.larc.feedback import Feedback
from tasks.larc.probe import probe
from tasks.larc.question import Question
from tasks.larc.substrate import Substrate

TOKENS = 2_048
"""Places of a physical batch: larger ones are not faster on a processor, and take memory."""


@dataclass(frozen=True)
class Gradients:
    """What one feedback gives: losses of N questions, and the gradient of each of F pairs of factors."""

    losses_N: Tensor
    A_FrD: Tensor
    B_FDr: Tensor


class Learner:
    """Reads questions with low-rank corrections of one frozen host; its owners' factors never mix.

    `insertion` 0 corrects the input embeddings, l > 0 what enters decoder layer l (counted from 0); what lies
    below it is computed without gradient. `tokens` bounds the places of a physical batch, and
    `checkpointing` recomputes a batch in the backward pass instead of keeping its activations.

    Raises `UnfitHost` when the host reads a masked row of branches differently from plain sequences.
    """

    def __init__(
        self, host: Substrate, insertion: int = 0, *, tokens: int = TOKENS, checkpointing: bool = False
    ) -> None:
        if not 0 <= insertion < host.layers:
            raise UnfitHost(
                f"the host has {host.layers} decoder layers; insert before one of 0 to {host.layers - 1}"
            )
        self.host = host
        self.insertion = insertion
        self.module = ""
        self.inputs = self.outputs = host.width
        self.tokens = tokens
        self.checkpointing = checkpointing
        self._rows = EmbeddedRows(host)
        probe(self)

    def energies(
        self, questions: Sequence[Question], A_FrD: Tensor, B_FDr: Tensor, owners_N: Sequence[int]
    ) -> Tensor:
        """Mean log probability per token of every candidate, end-of-sequence included: (N, J) float32, nats.

        Question n is read with the factors `A_FrD[owners_N[n]]`, `B_FDr[owners_N[n]]` (float32). The result
        is differentiable in both. All questions have the same number J of candidates.
        """
        batches = self._batches(questions, A_FrD, B_FDr, owners_N)
        keeps = torch.is_grad_enabled() and (A_FrD.requires_grad or B_FDr.requires_grad)
        found, rows = [], []
        with torch.set_grad_enabled(keeps):
            for batch, embeds_nTD in batches:
                found.append(self._read(batch, embeds_nTD, A_FrD, B_FDr, owners_N))
                rows += batch.rows_n
            back = torch.argsort(torch.tensor(rows, device=self.host.device))
            return torch.cat(found)[back]

    def gradients(
        self,
        questions: Sequence[Question],
        A_FrD: Tensor,
        B_FDr: Tensor,
        owners_N: Sequence[int],
        feedbacks: Sequence[Feedback],
        weights_N: Tensor,
    ) -> tuple[Tensor, list[Gradients]]:
        """Energies (N, J), and for each feedback the gradient of sum_n weights_n loss_n for both factors.

        Losses are summed, so one pass gives every owner the gradient of its own questions alone. Several
        feedbacks share the forward pass. Physical batches follow one another: memory holds one of them.
        """
        A_FrD, B_FDr = A_FrD.detach().requires_grad_(), B_FDr.detach().requires_grad_()
        answers = len(questions[0].candidates) if questions else 0
        for feedback in feedbacks:
            feedback.check(len(questions), answers)
        if tuple(weights_N.shape) != (len(questions),):
            raise BadQuestion(f"the weights are {tuple(weights_N.shape)}, of {len(questions)} questions")
        device = self.host.device
        energies_NJ = torch.empty(len(questions), answers, device=device)
        made = [
            Gradients(
                torch.empty(len(questions), device=device), torch.zeros_like(A_FrD), torch.zeros_like(B_FDr)
            )
            for _ in feedbacks
        ]
        for batch, embeds_nTD in self._batches(questions, A_FrD, B_FDr, owners_N):
            rows_n = torch.tensor(batch.rows_n, device=device)
            with torch.enable_grad():
                energies_nJ = self._read(batch, embeds_nTD, A_FrD, B_FDr, owners_N)
            energies_NJ[rows_n] = energies_nJ.detach()
            leaf_nJ = energies_nJ.detach().requires_grad_()
            for place, (feedback, gradients) in enumerate(zip(feedbacks, made, strict=True)):
                with torch.enable_grad():
                    losses_n = feedback.losses(leaf_nJ, rows_n)
                gradients.losses_N[rows_n] = losses_n.detach()
                [by_energy_nJ] = torch.autograd.grad(losses_n, leaf_nJ, weights_N.to(device)[rows_n])
                by_A, by_B = torch.autograd.grad(
                    energies_nJ, (A_FrD, B_FDr), by_energy_nJ, retain_graph=place < len(feedbacks) - 1
                )
                gradients.A_FrD.add_(by_A)
                gradients.B_FDr.add_(by_B)
        return energies_NJ, made

    def _batches(
        self, questions: Sequence[Question], A_FrD: Tensor, B_FDr: Tensor, owners_N: Sequence[int]
    ) -> Iterator[tuple[Batch, Tensor]]:
        self._check(questions, A_FrD, B_FDr, owners_N)
        laid = [self._rows.lay(question) for question in questions]
        sizes = [len(tree) for tree, _ in laid]
        for rows in cut(order(questions, sizes, owners_N), sizes, self.tokens):
            batch = lay(rows, [laid[row][0] for row in rows], self.host.dtype, self.host.device)
            embeds_nTD = torch.nn.utils.rnn.pad_sequence([laid[row][1] for row in rows], batch_first=True)
            yield batch, embeds_nTD

    def _read(
        self,
        batch: Batch,
        embeds_nTD: Tensor,
        A_FrD: Tensor,
        B_FDr: Tensor,
        owners_N: Sequence[int],
    ) -> Tensor:
        owners_n = torch.tensor([owners_N[row] for row in batch.rows_n], device=self.host.device)

        def read(A_nrD: Tensor, B_nDr: Tensor) -> Tensor:
            return self._forward(batch, embeds_nTD, A_nrD, B_nDr)

        A_nrD, B_nDr = A_FrD.index_select(0, owners_n), B_FDr.index_select(0, owners_n)
        if self.checkpointing and torch.is_grad_enabled():
            energies_nJ = checkpoint(read, A_nrD, B_nDr, use_reentrant=False, preserve_rng_state=False)
            assert isinstance(energies_nJ, Tensor)
            return energies_nJ
        return read(A_nrD, B_nDr)

    def _forward(self, batch: Batch, embeds_nTD: Tensor, A_nrD: Tensor, B_nDr: Tensor) -> Tensor:
        model = self.host.model
        if self.insertion == 0 and not self.module:
            embeds_nTD = corrected(embeds_nTD, A_nrD, B_nDr)
        wide = WideBackward() if torch.is_grad_enabled() else nullcontext()
        with self._attached(A_nrD, B_nDr), wide:
            hidden_nTD = model.get_decoder()(
                inputs_embeds=embeds_nTD,
                attention_mask=batch.mask_n1TT,
                position_ids=batch.positions_nT,
                use_cache=False,
            ).last_hidden_state
        scored_PD = hidden_nTD.flatten(0, 1).index_select(0, batch.scored_places_P)
        logits_PV = model.get_output_embeddings()(scored_PD).float()
        return tree_energies(logits_PV, batch)

    @contextmanager
    def _attached(self, A_nrD: Tensor, B_nDr: Tensor) -> Iterator[None]:
        """For one forward pass, correct what enters decoder layer l; l = 0 is done before the pass."""
        if self.insertion == 0:
            yield
            return

        def correct(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
            return (corrected(given[0], A_nrD, B_nDr), *given[1:])

        handle = self.host.model.get_decoder().layers[self.insertion].register_forward_pre_hook(correct)
        try:
            yield
        finally:
            handle.remove()

    def _check(
        self, questions: Sequence[Question], A_FrD: Tensor, B_FDr: Tensor, owners_N: Sequence[int]
    ) -> None:
        if not questions:
            raise BadQuestion("there is no question to read; give one at least")
        if len({len(question.candidates) for question in questions}) > 1:
            raise BadQuestion("questions read together need equally many candidates; read the others apart")
        fits = A_FrD.dim() == B_FDr.dim() == 3 and A_FrD.shape[-1] == self.inputs
        if (
            not fits
            or tuple(B_FDr.shape) != (len(A_FrD), self.outputs, A_FrD.shape[1])
            or A_FrD.dtype != torch.float32
            or B_FDr.dtype != torch.float32
        ):
            raise BadQuestion(
                f"factors are {A_FrD.dtype} {tuple(A_FrD.shape)} and {B_FDr.dtype} {tuple(B_FDr.shape)}; "
                f"this host takes float32 (F, r, {self.inputs}) and (F, {self.outputs}, r)"
            )
        if len(owners_N) != len(questions) or not all(0 <= owner < len(A_FrD) for owner in owners_N):
            raise BadQuestion(f"give each question an owner from 0 to {len(A_FrD) - 1}")


def corrected(h_nTD: Tensor, A_nrD: Tensor, B_nDr: Tensor) -> Tensor:
    """h + B A h of every token, summed in float32, rounded once to the dtype of h; B = 0 gives h itself."""
    plain_nTD = h_nTD.float()
    return torch.baddbmm(plain_nTD, plain_nTD @ A_nrD.mT, B_nDr.mT).to(h_nTD.dtype)


def tree_energies(logits_PV: Tensor, batch: Batch) -> Tensor:
    """Mean log probability per token (n, J) from the logits (P, V) float32 at the scored places."""
    logged_PV = torch.log_softmax(logits_PV, -1)
    # Indexing with two tensors adds gradients in an order that threads decide; index_select does not.
    flat = batch.scored_nJL * logged_PV.shape[1] + batch.targets_nJL
    logged_nJL = logged_PV.flatten().index_select(0, flat.flatten()).view(flat.shape)
    return (logged_nJL * batch.weights_nJL).sum(-1)
