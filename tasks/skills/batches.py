"""Training batches of the skills core, each a pure function of seed and step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.assembly import Attachment
from tasks.corpus import EOS, PAD
from tasks.skills.params import SkillCoreParams
from tasks.skills.render import Interface, Renderer
from tasks.skills.tasks import SkillTask, TaskMaker

SHOWN = (Interface.NONE, Interface.POSITIONAL, Interface.COMBINED, Interface.GLOBAL)
"""In the order of `InterfaceMix`."""


@dataclass(frozen=True)
class SkillBatch:
    """Sequences of prompt, answer and end, padded behind: tokens_BL int64; `is_answer_BL` and `is_prompt_BL`
    bool say of which part each token is (neither for padding); attachments.
    """

    tokens_BL: Tensor
    is_prompt_BL: Tensor
    is_answer_BL: Tensor
    attachments: tuple[Attachment, ...]


def make_batch(
    prompts: Sequence[NDArray[np.int64]],
    answers: Sequence[NDArray[np.int64]],
    attachments: tuple[Attachment, ...],
) -> SkillBatch:
    """Put prompts and answers (token ids without an end) into one batch."""
    length = max(len(p) + len(a) + 1 for p, a in zip(prompts, answers, strict=True))
    tokens_BL = torch.full((len(prompts), length), PAD)
    is_prompt_BL = torch.zeros(len(prompts), length, dtype=torch.bool)
    is_answer_BL = torch.zeros_like(is_prompt_BL)
    for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        end = len(prompt) + len(answer) + 1
        tokens_BL[row, :end] = torch.from_numpy(np.concatenate([prompt, answer, [EOS]]))
        is_prompt_BL[row, : len(prompt)] = True
        is_answer_BL[row, len(prompt) : end] = True
    return SkillBatch(tokens_BL, is_prompt_BL, is_answer_BL, attachments)


def training_batch(renderer: Renderer, tasks: TaskMaker, params: SkillCoreParams, step: int) -> SkillBatch:
    """The batch of update `step`: tasks of the training split, each result shown by a drawn interface."""
    made: list[SkillTask] = tasks.make(params.rows, seed=2_000_003 + step)
    shares = np.array(params.shown.shares())
    rng = np.random.default_rng([params.seed, step])
    shown = [SHOWN[number] for number in rng.choice(len(SHOWN), len(made), p=shares / shares.sum())]
    prompts = [renderer.prompt(task.prompt) for task in made]
    answers = [renderer.answer(task.answer) for task in made]
    attached = renderer.attach(shown, answers, [len(prompt) for prompt in prompts])
    return make_batch(prompts, answers, attached)
