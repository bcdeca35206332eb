"""Outer learning of a slow state: the query loss of a few episodes, at the slow or at the adapted state."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor, nn

from tasks.checkpoint import Checkpoints, load_checkpoint, restore_training, save_checkpoint, training_tensors
from tasks.larc import Episode as FastState
from tasks.larc import (
    ExpectedCost,
    Gradients,
    LarcParams,
    Learner,
    Question,
    SlowState,
    begin,
    stack,
    step,
)
from tasks.programs import ProgramsParams, Split, groups, query_errors, seed_of, support
from tasks.progress import Progress, silent
from tasks.study.curve import CurvePoint, LogRow, averaged, curve_point
from tasks.study.inner import Feedback, adapt, start
from tasks.study.params import Objective, StudyParams
from tasks.study.questions import Questioner
from tasks.study.visits import Visits


@dataclass(frozen=True)
class Trained:
    """A slow state, and what its training looked like on the way."""

    slow: SlowState
    curve: list[CurvePoint]
    log: list[LogRow]


class Slow(nn.Module):
    """The factors that the outer optimiser owns."""

    def __init__(self, start: SlowState) -> None:
        super().__init__()
        self.A_rD = nn.Parameter(start.A_rD.clone())
        self.B_Dr = nn.Parameter(start.B_Dr.clone())


class OuterTrainer:
    """A slow state on its way: `step` makes one outer update.

    Both objectives of a seed start from the same factors and see the same episodes (paired).
    """

    def __init__(
        self,
        learner: Learner,
        questioner: Questioner,
        objective: Objective,
        seed: int,
        programs: ProgramsParams,
        larc: LarcParams,
        study: StudyParams,
    ) -> None:
        self.learner, self.questioner = learner, questioner
        self.objective, self.seed = objective, seed
        self.programs, self.larc, self.study = programs, larc, study
        self.start = start(learner, larc, seed)
        outer = study.outer
        self.slow = Slow(self.start)
        self.optimizer = torch.optim.AdamW(
            self.slow.parameters(),
            lr=outer.rate,
            betas=outer.betas,
            eps=outer.eps,
            weight_decay=outer.weight_decay,
        )
        self.visits = Visits(groups(programs, Split.TRAIN), outer.episodes, seed)
        self.finished = 0
        self.curve: list[CurvePoint] = []
        self.log: list[LogRow] = []
        self._rows: list[LogRow] = []

    @property
    def state(self) -> SlowState:
        """The slow state as it is now."""
        return replace(
            self.start,
            A_rD=self.slow.A_rD.detach().clone(),
            B_Dr=self.slow.B_Dr.detach().clone(),
            version=self.finished,
        )

    def step(self) -> float:
        """One update on the next episodes; returns the mean query loss that it was made from."""
        visited = self.visits.of(self.finished)
        questions = [self.questioner.ask(episode.group) for episode in visited]
        errors_NJ = torch.tensor([support(episode, self.programs).errors for episode in visited])
        query_NJ = torch.tensor([query_errors(episode, self.programs) for episode in visited])
        state = self.state
        begun = [
            begin(state, seed=seed_of(self.seed, "episode", self.finished, place))
            for place in range(len(visited))
        ]
        make = self._static if self.objective == "static" else self._adapted
        gradients, row = make(begun, questions, errors_NJ, query_NJ)
        self._apply(gradients)
        self.finished += 1
        self._rows.append(row)
        if len(self._rows) == self.study.outer.log_every or self.finished == self.study.outer.updates:
            self.log.append(averaged(self.finished, self._rows))
            self._rows = []
        return row.query_loss

    def add_curve_point(self) -> None:
        """Read the groups of the learning curve at the slow state as it is now."""
        found = groups(self.programs, self.study.outer.curve_split)
        self.curve.append(
            curve_point(
                self.learner, self.questioner, self.state, found, self.programs, self.larc, self.study
            )
        )

    def save(self, checkpoints: Checkpoints) -> None:
        """Keep everything that the next update depends on, and what is known of the earlier ones."""
        record = {
            "finished": self.finished,
            "curve": [asdict(point) for point in self.curve],
            "log": [asdict(row) for row in self.log],
            "rows": [asdict(row) for row in self._rows],
        }
        tensors = training_tensors(self.slow, self.optimizer)
        save_checkpoint(checkpoints.folder, checkpoints.fingerprint, tensors, record)

    def resume(self, checkpoints: Checkpoints) -> None:
        """Continue from a kept state, if there is one."""
        found = load_checkpoint(checkpoints.folder, checkpoints.fingerprint)
        if found is not None:
            tensors, record = found
            restore_training(self.slow, self.optimizer, tensors)
            self.finished = int(record["finished"])
            self.curve = [CurvePoint(**point) for point in record["curve"]]
            self.log = [LogRow(**row) for row in record["log"]]
            self._rows = [LogRow(**row) for row in record["rows"]]

    def _static(
        self,
        begun: Sequence[FastState],
        questions: Sequence[Question],
        errors_NJ: Tensor,
        query_NJ: Tensor,
    ) -> tuple[Gradients, LogRow]:
        """The query's gradient at the slow state. The support steps are taken as well, as matched work.

        The first of them and the query read the same questions with the same factors: one pass serves both.
        """
        owners, ones_N = range(len(begun)), torch.ones(len(begun))
        A_FrD, B_FDr = (part.to(self.learner.host.device) for part in stack(begun))
        feedbacks = [ExpectedCost(errors_NJ), ExpectedCost(query_NJ)]
        _, [first, query] = self.learner.gradients(questions, A_FrD, B_FDr, owners, feedbacks, ones_N)
        moved = step(begun, first, set(owners), self.larc.rate)
        losses = [float(first.losses_N.mean())]
        moved, seen = adapt(
            self.learner,
            moved,
            questions,
            errors_NJ,
            [Feedback.REAL] * len(moved),
            steps=self.study.inner_steps - 1,
            rate=self.larc.rate,
        )
        losses += [float(done.losses_F.mean()) for done in seen]
        return query, self._row(begun, moved, losses, query)

    def _adapted(
        self,
        begun: Sequence[FastState],
        questions: Sequence[Question],
        errors_NJ: Tensor,
        query_NJ: Tensor,
    ) -> tuple[Gradients, LogRow]:
        """The query's gradient at the adapted states, handed to the slow factors as it is (equation 5).

        That is sg(Phi) + rho - sg(rho): the value is the adapted one, the Jacobian to rho the identity.
        """
        owners, ones_N = range(len(begun)), torch.ones(len(begun))
        moved, seen = adapt(
            self.learner,
            begun,
            questions,
            errors_NJ,
            [Feedback.REAL] * len(begun),
            steps=self.study.inner_steps,
            rate=self.larc.rate,
        )
        A_FrD, B_FDr = (part.to(self.learner.host.device) for part in stack(moved))
        feedbacks = [ExpectedCost(query_NJ), ExpectedCost(errors_NJ)]
        energies_NJ, [query] = self.learner.gradients(questions, A_FrD, B_FDr, owners, feedbacks[:1], ones_N)
        after_N = feedbacks[1].losses(energies_NJ, torch.arange(len(begun), device=energies_NJ.device))
        losses = [*(float(done.losses_F.mean()) for done in seen), float(after_N.mean())]
        return query, self._row(begun, moved, losses, query)

    def _row(
        self,
        begun: Sequence[FastState],
        moved: Sequence[FastState],
        losses: Sequence[float],
        query: Gradients,
    ) -> LogRow:
        """What an update looked like; `losses` are of the support, before its steps and, if known, after."""
        apart_N = [
            (one.A_rD - other.A_rD).square().sum() + (one.B_Dr - other.B_Dr).square().sum()
            for one, other in zip(begun, moved, strict=True)
        ]
        gradient = torch.stack([query.A_FrD.mean(0).norm(), query.B_FDr.mean(0).norm()]).norm()
        return LogRow(
            update=self.finished,
            query_loss=float(query.losses_N.mean()),
            support_before=losses[0],
            support_after=losses[-1],
            update_norm=float(torch.stack(apart_N).sqrt().mean()),
            gradient_norm=float(gradient),
            slow_norm=float((self.slow.A_rD.square().sum() + self.slow.B_Dr.square().sum()).sqrt().detach()),
        )

    def _apply(self, gradients: Gradients) -> None:
        """One AdamW update on the mean of the episodes' gradients (ours; only the clip feels their scale)."""
        self.slow.A_rD.grad = gradients.A_FrD.mean(0).cpu()
        self.slow.B_Dr.grad = gradients.B_FDr.mean(0).cpu()
        nn.utils.clip_grad_norm_(self.slow.parameters(), self.study.outer.clip)
        self.optimizer.step()


def train_slow(
    trainer: OuterTrainer, *, progress: Progress = silent, checkpoints: Checkpoints | None = None
) -> Trained:
    """Train to the last update; an interrupted training continues bit for bit.

    Equal inputs, device and thread count give equal bytes. `progress` counts outer updates.
    """
    outer = trainer.study.outer
    if checkpoints is not None:
        trainer.resume(checkpoints)
    saved = time.monotonic()
    while True:
        due = trainer.finished % outer.curve_every == 0 or trainer.finished == outer.updates
        if due and (not trainer.curve or trainer.curve[-1].update < trainer.finished):
            trainer.add_curve_point()
        if trainer.finished == outer.updates:
            return Trained(trainer.state, trainer.curve, trainer.log)
        loss = trainer.step()
        progress(trainer.finished, outer.updates, loss=loss)
        if checkpoints is not None and time.monotonic() - saved >= checkpoints.seconds:
            trainer.save(checkpoints)
            saved = time.monotonic()
