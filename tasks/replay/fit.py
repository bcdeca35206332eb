"""The task fit: the slow state learns the training prefix, each job with and without its cases (LARC 5)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tasks.checkpoint import Checkpoints, load_checkpoint, restore_training, save_checkpoint, training_tensors
from tasks.larc import RightCandidate, SlowState
from tasks.progress import Progress, silent
from tasks.replay.cases import CaseMemory
from tasks.replay.experts import INDEX
from tasks.replay.jobs import Job
from tasks.replay.params import ReplayParams
from tasks.replay.policy import Policy, labels_tensor
from tasks.replay.prompts import Prompts, causal_prompts
from tasks.replay.queue import events
from tasks.replay.score import nested_weights


@dataclass(frozen=True)
class TrainingSet:
    """The training prefix with its causal prompts, and weights (N,) of mean one."""

    jobs: Sequence[Job]
    prompts: Sequence[Prompts]
    weights_N: np.ndarray


def training_set(jobs: Sequence[Job], params: ReplayParams) -> TrainingSet:
    """Prompts as they were when each job started; equal weights by repository, then commit, then job."""
    memories = empty_memories(jobs, params)
    prompts = causal_prompts(events(jobs), memories, params.cases)
    return TrainingSet(jobs, [prompts[job.id] for job in jobs], nested_weights(jobs) * len(jobs))


def empty_memories(jobs: Sequence[Job], params: ReplayParams) -> dict[str, CaseMemory]:
    """A case memory without cases for each repository."""
    return {
        repository: CaseMemory(params.cases.cases, params.cases.case_bytes)
        for repository in sorted({job.repository for job in jobs})
    }


class _Factors(nn.Module):
    """The slow state's factors as what an optimiser moves."""

    def __init__(self, slow: SlowState) -> None:
        super().__init__()
        self.A_rD = nn.Parameter(slow.A_rD.detach().clone())
        self.B_Dr = nn.Parameter(slow.B_Dr.detach().clone())


def fit_slow_state(
    policy: Policy,
    slow: SlowState,
    training: TrainingSet,
    params: ReplayParams,
    *,
    progress: Progress = silent,
    checkpoints: Checkpoints | None = None,
) -> tuple[SlowState, list[float]]:
    """The slow state after the fit, and the mean loss (nats, weighted) of each update before its step.

    Every update takes `params.fit.jobs` jobs in both views; each epoch is a seeded permutation of all jobs.
    The loss is the weighted cross-entropy of the four label energies. With `checkpoints` it continues bit for
    bit.
    """
    fit = params.fit
    factors = _Factors(slow)
    optimizer = torch.optim.AdamW(
        factors.parameters(), lr=fit.rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0
    )
    count = len(training.jobs)
    per_epoch = -(-count // fit.jobs)
    total = per_epoch * fit.epochs
    done, losses = _resume(factors, optimizer, checkpoints)
    saved = time.monotonic()
    while done < total:
        epoch, place = divmod(done, per_epoch)
        order = np.random.default_rng([fit.seed, epoch]).permutation(count)
        chosen = order[place * fit.jobs : (place + 1) * fit.jobs]
        losses.append(_update(policy, factors, training, chosen, optimizer, fit.clip))
        done += 1
        if checkpoints is not None and time.monotonic() - saved >= checkpoints.seconds:
            _save(factors, optimizer, checkpoints, done, losses)
            saved = time.monotonic()
        progress(done, total, loss=losses[-1])
    fitted = replace(
        slow,
        A_rD=factors.A_rD.detach().clone(),
        B_Dr=factors.B_Dr.detach().clone(),
        version=slow.version + total,
    )
    return fitted, losses


def _update(
    policy: Policy,
    factors: _Factors,
    training: TrainingSet,
    chosen: np.ndarray,
    optimizer: torch.optim.Optimizer,
    clip: float,
) -> float:
    rows = [(place, view) for place in chosen for view in ("plain", "memory")]
    questions = [policy.question(training.prompts[place].of(view)) for place, view in rows]
    labels = labels_tensor([INDEX[training.jobs[place].label] for place, _ in rows])
    weights = torch.tensor([training.weights_N[place] / len(rows) for place, _ in rows], dtype=torch.float32)
    device = policy.learner.host.device
    _, [made] = policy.learner.gradients(
        questions,
        factors.A_rD.detach()[None].to(device),
        factors.B_Dr.detach()[None].to(device),
        [0] * len(rows),
        [RightCandidate(labels)],
        weights,
    )
    factors.A_rD.grad, factors.B_Dr.grad = made.A_FrD[0].cpu(), made.B_FDr[0].cpu()
    nn.utils.clip_grad_norm_(factors.parameters(), clip)
    optimizer.step()
    return float((made.losses_N.cpu() * weights).sum())


def _save(
    factors: _Factors,
    optimizer: torch.optim.Optimizer,
    checkpoints: Checkpoints,
    done: int,
    losses: list[float],
) -> None:
    tensors: dict[str, Tensor] = training_tensors(factors, optimizer)
    record: dict[str, Any] = {"done": done, "losses": losses}
    save_checkpoint(checkpoints.folder, checkpoints.fingerprint, tensors, record)


def _resume(
    factors: _Factors, optimizer: torch.optim.Optimizer, checkpoints: Checkpoints | None
) -> tuple[int, list[float]]:
    saved = load_checkpoint(checkpoints.folder, checkpoints.fingerprint) if checkpoints else None
    if saved is None:
        return 0, []
    tensors, record = saved
    restore_training(factors, optimizer, tensors)
    return int(record["done"]), [float(loss) for loss in record["losses"]]
