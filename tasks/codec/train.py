"""Training a codec: local adaptation of a batch's cells, then one shared update at the adapted cells."""

import hashlib
import math
import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from tasks.checkpoint import Checkpoints, load_checkpoint, restore_training, save_checkpoint, training_tensors
from tasks.codec.adapt import CellAdam, read_with_gradient
from tasks.codec.groups import BlockGroups, group_documents
from tasks.codec.model import Codec, freeze
from tasks.codec.params import CodecParams
from tasks.codec.reading import Reading, Recall, summarise
from tasks.codec.rounding import as_stored
from tasks.errors import TooLittleText
from tasks.progress import Progress, silent

_BETAS = (0.9, 0.95)


def seeded(seed: int, *purpose: str | int) -> torch.Generator:
    """A generator of its own for each purpose, so that no draw depends on how many others came before."""
    digest = hashlib.sha256(repr((seed, *purpose)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


class GroupOrder:
    """Which groups make up each batch: permutations in turn, a function of seed and update alone."""

    def __init__(self, groups: int, batch: int, seed: int) -> None:
        self._groups = groups
        self._batch = batch
        self._seed = seed
        self._epochs: dict[int, Tensor] = {}

    def batch(self, step: int) -> Tensor:
        """Indices (batch,) of the groups of update `step`."""
        places = torch.arange(step * self._batch, (step + 1) * self._batch)
        first, last = int(places[0]) // self._groups, int(places[-1]) // self._groups
        self._epochs = {n: self._epochs.get(n, self._permutation(n)) for n in range(first, last + 1)}
        return torch.stack([self._epochs[int(n) // self._groups][n % self._groups] for n in places])

    def _permutation(self, epoch: int) -> Tensor:
        return torch.randperm(self._groups, generator=seeded(self._seed, "order", epoch))


def learning_rate(params: CodecParams, step: int) -> float:
    """Linear warm-up, then a cosine from `rate` to `rate_floor` at the last update."""
    if step < params.warmup_steps:
        return params.rate * (step + 1) / params.warmup_steps
    share = (step - params.warmup_steps) / max(1, params.steps - params.warmup_steps)
    return params.rate_floor + (params.rate - params.rate_floor) * 0.5 * (1 + math.cos(math.pi * share))


class Trainer:
    """A codec on its way: `step` makes one local-and-shared update on a batch of blocks."""

    def __init__(self, params: CodecParams, vocab_size: int, device: str = "cpu") -> None:
        self.params = params
        self.codec = Codec(params.architecture, vocab_size, seeded(params.seed, "weights")).to(device)
        decayed = [p for p in self.codec.parameters() if p.dim() > 1]
        others = [p for p in self.codec.parameters() if p.dim() <= 1]
        groups = [
            {"params": decayed, "weight_decay": params.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=params.rate, betas=_BETAS)
        self.finished = 0

    def step(self, tokens_BT: Tensor, mask_BT: Tensor) -> float:
        """One episode on B blocks; returns the mean loss per real token at the adapted cells, in nats."""
        params, codec = self.params, self.codec
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(params, self.finished)
        negatives = self._negatives(tokens_BT.device)
        tokens_BT = self._with_random_tokens(tokens_BT, mask_BT)
        present_B = mask_BT.any(1)
        z0_BC = codec.encode(tokens_BT)
        adapted_BC = self._adapt(z0_BC.detach(), tokens_BT, mask_BT, present_B, negatives)
        # First order: the residual is a constant, so the encoder is trained through z0 alone.
        z_BC = z0_BC + (adapted_BC - z0_BC.detach())
        slots_BTS = self._slots(z_BC, present_B)
        loss = cross_entropy(codec.head.weight, slots_BTS[mask_BT], tokens_BT[mask_BT], negatives)
        self.optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(codec.parameters(), params.clip)
        self.optimizer.step()
        self.finished += 1
        return float(loss.detach())

    def save(self, checkpoints: Checkpoints) -> None:
        """Keep everything that the next update depends on."""
        tensors = training_tensors(self.codec, self.optimizer)
        save_checkpoint(checkpoints.folder, checkpoints.fingerprint, tensors, {"finished": self.finished})

    def resume(self, checkpoints: Checkpoints) -> None:
        """Continue from a kept state, if there is one."""
        found = load_checkpoint(checkpoints.folder, checkpoints.fingerprint)
        if found is not None:
            tensors, record = found
            restore_training(self.codec, self.optimizer, tensors)
            self.finished = int(record["finished"])

    def _slots(self, z_BC: Tensor, present_B: Tensor) -> Tensor:
        stored_BC = as_stored(z_BC, self.params.stored_dtype)
        return self.codec.slots(stored_BC, self.codec.parents(stored_BC, present_B))

    def _adapt(
        self, z_BC: Tensor, tokens_BT: Tensor, mask_BT: Tensor, present_B: Tensor, negatives: Tensor | None
    ) -> Tensor:
        """K Adam steps on the cells alone, with the codec as it is now."""
        optimizer = CellAdam(z_BC, self.params.local_rate)
        head_VS = self.codec.head.weight.detach()
        for _ in range(self.params.local_steps):
            z_BC = z_BC.requires_grad_()
            slots_BTS = self._slots(z_BC, present_B)
            loss = cross_entropy(head_VS, slots_BTS[mask_BT], tokens_BT[mask_BT], negatives)
            (gradient_BC,) = torch.autograd.grad(loss, z_BC)
            z_BC = optimizer.step(z_BC.detach(), gradient_BC)
        return z_BC

    def _with_random_tokens(self, tokens_BT: Tensor, mask_BT: Tensor) -> Tensor:
        generator = seeded(self.params.seed, "random tokens", self.finished)
        share = self.params.random_share(self.codec.vocab_size)
        chosen_BT = torch.rand(tokens_BT.shape, generator=generator) < share
        drawn_BT = torch.randint(self.codec.vocab_size, tokens_BT.shape, generator=generator)
        device = tokens_BT.device
        return torch.where(chosen_BT.to(device) & mask_BT, drawn_BT.to(device), tokens_BT)

    def _negatives(self, device: torch.device) -> Tensor | None:
        if not self.params.candidates:
            return None
        generator = seeded(self.params.seed, "negatives", self.finished)
        drawn = torch.randint(self.codec.vocab_size, (self.params.candidates,), generator=generator)
        return drawn.to(device)


def cross_entropy(head_VS: Tensor, slots_MS: Tensor, targets_M: Tensor, negatives: Tensor | None) -> Tensor:
    """Mean loss of M real tokens, nats, over the vocabulary or the batch's own tokens and `negatives`."""
    if negatives is None:
        return F.cross_entropy(slots_MS @ head_VS.T, targets_M)
    candidates, place = torch.unique(torch.cat([targets_M, negatives]), return_inverse=True)
    return F.cross_entropy(slots_MS @ head_VS[candidates].T, place[: len(targets_M)])


def train(
    params: CodecParams,
    documents: Sequence[np.ndarray],
    vocab_size: int,
    *,
    progress: Progress = silent,
    device: str = "cpu",
    checkpoints: Checkpoints | None = None,
) -> Codec:
    """Train a codec on the token ids of documents, each (L,); returns it frozen, on `device`.

    Equal parameters, documents, device and thread count give equal bytes, also when the training was
    interrupted and continued from its checkpoint. Raises `TooLittleText` when the documents hold no token.
    """
    data = group_documents(documents, params.architecture)
    if len(data) == 0:
        raise TooLittleText("the even shards hold no text to train the codec on; give a larger corpus")
    trainer = Trainer(params, vocab_size, device)
    if checkpoints is not None:
        trainer.resume(checkpoints)
    order = GroupOrder(
        len(data), max(1, params.batch_blocks // params.architecture.group_blocks), params.seed
    )
    saved = time.monotonic()
    while trainer.finished < params.steps:
        tokens_BT, mask_BT = data.select(order.batch(trainer.finished))
        loss = trainer.step(tokens_BT.to(device), mask_BT.to(device))
        progress(trainer.finished, params.steps, loss=loss)
        if checkpoints is not None and time.monotonic() - saved >= checkpoints.seconds:
            trainer.save(checkpoints)
            saved = time.monotonic()
    return freeze(trainer.codec)


def validate(
    codec: Codec, data: BlockGroups, params: CodecParams, *, device: str = "cpu"
) -> tuple[Recall, Recall]:
    """Figures on blocks the codec has not seen, as stored: the encoder's own cells, and adapted ones."""
    batch = max(1, params.batch_blocks // params.architecture.group_blocks)
    masks: list[Tensor] = []
    encoded: list[Reading] = []
    adapted: list[Reading] = []
    for start in range(0, len(data), batch):
        index_B = torch.arange(start, min(start + batch, len(data)))
        tokens_BT, mask_BT = (part.to(device) for part in data.select(index_B))
        cells_BC = codec.encode(tokens_BT)
        optimizer = CellAdam(cells_BC, params.local_rate)
        reading, gradient_BC = read_with_gradient(codec, cells_BC, tokens_BT, mask_BT, params.stored_dtype)
        encoded.append(reading)
        for _ in range(params.validation_steps):
            cells_BC = optimizer.step(cells_BC, gradient_BC)
            reading, gradient_BC = read_with_gradient(
                codec, cells_BC, tokens_BT, mask_BT, params.stored_dtype
            )
        adapted.append(reading)
        masks.append(mask_BT)
    return summarise(encoded, masks), summarise(adapted, masks)
