"""Slow states and the episodes that own a copy of one (LARC 2.1): begin, update, read, reset and resume.

`begin` copies a slow state; `updates.update` replaces an episode's factors; `read` looks and changes nothing;
`reset` returns to the bound slow state; `session.load_session` resumes the trajectory that was saved.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from tasks.errors import BadQuestion
from tasks.larc.learner import Learner
from tasks.larc.question import Question


@dataclass(frozen=True)
class SlowState:
    """rho: factors that change only with an outer update, each time as a new version.

    `B_Dr @ A_rD` is added to the identity before decoder layer `insertion` (0: on the input embeddings), or,
    where `module` names a linear module of that layer, to its weight: then it is a LoRA.
    """

    A_rD: Tensor
    """float32."""
    B_Dr: Tensor
    """float32."""
    version: int = 0
    """Outer updates that it has seen."""
    insertion: int = 0
    module: str = ""

    @property
    def rank(self) -> int:
        """Rank r."""
        return self.A_rD.shape[0]

    @property
    def width(self) -> int:
        """What A reads: the hidden size d of the host, or what the module takes."""
        return self.A_rD.shape[1]

    @property
    def outputs(self) -> int:
        """What B writes: d again, or what the module gives."""
        return self.B_Dr.shape[0]


@dataclass(frozen=True)
class Episode:
    """Phi: the fast factors of one episode or session, its own copy of the state it is bound to, its stream.

    Frozen: an operation returns the episode that follows, which goes on with the same `stream`.
    """

    bound: SlowState
    A_rD: Tensor
    B_Dr: Tensor
    stream: np.random.Generator
    steps: int = 0
    """Updates since it began, or since its last reset."""


def new_slow_state(
    width: int,
    *,
    seed: int,
    rank: int = 4,
    deviation: float = 0.02,
    insertion: int = 0,
    module: str = "",
    outputs: int | None = None,
) -> SlowState:
    """A ~ N(0, deviation^2) from `seed`, B = 0: a correction of exactly nothing.

    `width` is what A reads and `outputs` what B writes, the same unless a `module` has other sizes.
    """
    generator = torch.Generator().manual_seed(seed)
    A_rD = deviation * torch.randn(rank, width, generator=generator)
    B_Dr = torch.zeros(width if outputs is None else outputs, rank)
    return SlowState(A_rD, B_Dr, insertion=insertion, module=module)


def begin(slow: SlowState, *, seed: int) -> Episode:
    """An episode at `slow`, with copies of its own and a random stream of its own (PCG64 from `seed`)."""
    bound = replace(slow, A_rD=slow.A_rD.detach().clone(), B_Dr=slow.B_Dr.detach().clone())
    return Episode(bound, bound.A_rD.clone(), bound.B_Dr.clone(), np.random.Generator(np.random.PCG64(seed)))


def reset(episode: Episode) -> Episode:
    """Back to the bound slow state, with no step taken; the random stream goes on, as time does."""
    bound = episode.bound
    return replace(episode, A_rD=bound.A_rD.clone(), B_Dr=bound.B_Dr.clone(), steps=0)


def stack(episodes: Sequence[Episode]) -> tuple[Tensor, Tensor]:
    """The factors of F episodes as (F, r, D) and (F, D, r) float32."""
    if not episodes:
        raise BadQuestion("there is no episode; begin one first")
    return torch.stack([one.A_rD for one in episodes]), torch.stack([one.B_Dr for one in episodes])


def read(
    learner: Learner, episodes: Sequence[Episode], questions: Sequence[Question], owners_N: Sequence[int]
) -> Tensor:
    """Energies (N, J) float32 of the questions, each with the current factors of its episode; no gradient."""
    check_place(learner, episodes)
    with torch.no_grad():
        return learner.energies(questions, *on_host(learner, *stack(episodes)), owners_N)


def on_host(learner: Learner, A_FrD: Tensor, B_FDr: Tensor) -> tuple[Tensor, Tensor]:
    """The factors where the host computes."""
    return A_FrD.to(learner.host.device), B_FDr.to(learner.host.device)


def check_place(learner: Learner, episodes: Sequence[Episode]) -> None:
    """Raise `BadQuestion` when an episode's factors act elsewhere than the learner puts them."""
    for episode in episodes:
        theirs, ours = (place_of(one.insertion, one.module) for one in (episode.bound, learner))
        if theirs != ours:
            raise BadQuestion(
                f"an episode's factors act {theirs}, the learner's {ours}; make a learner for its place"
            )


def place_of(insertion: int, module: str) -> str:
    """Where factors act, in words."""
    return f"on {module} of layer {insertion}" if module else f"before layer {insertion}"
