"""Training of the skills core on prompts whose results are shown by every interface, then frozen for good."""

import hashlib

import torch
from torch import Tensor

from tasks.assembly import SKILL_TOKENS, CoreTraining, ResidualCore, product_dtype
from tasks.checkpoint import Checkpoints
from tasks.corpus import Tokenizer
from tasks.progress import Progress, silent
from tasks.skills.batches import SkillBatch, training_batch
from tasks.skills.params import SkillCoreParams, TokenParams
from tasks.skills.render import Renderer, source_widths
from tasks.skills.tasks import TaskMaker


class SkillTrainer(CoreTraining[ResidualCore]):
    """The core of skills on its way."""

    def __init__(
        self, core: ResidualCore, renderer: Renderer, tasks: TaskMaker, params: SkillCoreParams
    ) -> None:
        super().__init__(core, params)
        self.renderer, self.tasks, self.params = renderer, tasks, params

    def loss(self, step: int) -> Tensor:
        """The loss of an update's batch, see `batch_loss`."""
        batch = training_batch(self.renderer, self.tasks, self.params, step)
        return batch_loss(self.core, batch, self.params.prompt_weight)


def new_skill_core(params: SkillCoreParams, tokens: TokenParams, tokenizer: Tokenizer) -> ResidualCore:
    """An untrained core that copies token observations."""
    digest = hashlib.sha256(f"skills core {params.seed}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    core = ResidualCore(params.architecture, tokenizer.vocab_size, source_widths(tokens), generator)
    core.start_from_codes([SKILL_TOKENS], generator)
    return core


def train_skill_core(
    core: ResidualCore,
    renderer: Renderer,
    tasks: TaskMaker,
    params: SkillCoreParams,
    *,
    progress: Progress = silent,
    checkpoints: Checkpoints | None = None,
) -> None:
    """Train a core in place and freeze it.

    Equal inputs, device and thread count give equal bytes, also when the training was interrupted and
    continued from its checkpoint.
    """
    SkillTrainer(core, renderer, tasks, params).run(progress, checkpoints)


def batch_loss(core: ResidualCore, batch: SkillBatch, prompt_weight: float) -> Tensor:
    """Mean NLL in nats of answer tokens, the end among them, plus `prompt_weight` times that of prompts."""
    dtype = product_dtype(batch.tokens_BL.device)
    with torch.autocast(batch.tokens_BL.device.type, dtype, enabled=dtype != torch.float32):
        logits_BLV = core(batch.tokens_BL[:, :-1], batch.attachments)
    nll_BL = -logits_BLV.gather(-1, batch.tokens_BL[:, 1:, None]).squeeze(-1)
    answer, prompt = (nll_BL[part_BL[:, 1:]].mean() for part_BL in (batch.is_answer_BL, batch.is_prompt_BL))
    loss: Tensor = answer + prompt_weight * prompt
    return loss
