"""What a study's artifacts follow from: fingerprints of trainings, predictions and the evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from store import Recipe, Ref
from tasks.hosts import HostParams
from tasks.larc import LarcParams
from tasks.programs import ProgramsParams
from tasks.study.params import Objective, StudyParams
from tasks.study.scores import UNTRAINED

TRAINING = "residual.selection/1"
PREDICTIONS = "evaluation.selection.predictions/1"
EVALUATION = "evaluation.selection/1"


@dataclass(frozen=True)
class Plan:
    """A study on a host: everything that decides its figures."""

    host: Ref
    host_params: HostParams
    programs: ProgramsParams
    larc: LarcParams
    study: StudyParams

    @property
    def trainings(self) -> list[tuple[Objective, int]]:
        """Slow states that are trained, in this order: the objectives of one seed after another."""
        return [(objective, seed) for seed in self.study.seeds for objective in self.study.objectives]

    @property
    def arms(self) -> list[tuple[str, int]]:
        """Slow states that are evaluated: each objective's with every seed, and the untrained starts."""
        return [(arm, seed) for arm in (*self.study.objectives, UNTRAINED) for seed in self.study.seeds]

    def training(self, objective: Objective, seed: int) -> Recipe:
        """How a slow state is trained; neither judgement nor development enters."""
        outer = self.study.outer.model_dump(mode="json")
        chosen = {
            "objective": objective,
            "seed": seed,
            "inner_steps": self.study.inner_steps,
            "outer": outer,
            **self._limits(),
            # The learning curve and its shams are part of what is published beside the state.
            "curve_seed": self.study.judge.seed,
        }
        return Recipe(TRAINING, {**self._common(), "study": chosen}, (self.host.version,))

    def predictions(self, arm: str, seed: int, trained: Ref | None) -> Recipe:
        """How the predictions of a slow state on development episodes are made."""
        chosen = {
            "arm": arm,
            "seed": seed,
            "inner_steps": self.study.inner_steps,
            "sham_seed": self.study.judge.seed,
            **self._limits(),
        }
        inputs = (self.host.version, *([trained.version] if trained is not None else []))
        return Recipe(PREDICTIONS, {**self._common(), "study": chosen}, inputs)

    def evaluation(self, sealed: Mapping[tuple[str, int], Ref]) -> Recipe:
        """How the figures follow from sealed predictions."""
        inputs: Sequence[str] = [ref.version for ref in sealed.values()]
        values = {**self._common(), "study": self.study.model_dump(mode="json")}
        return Recipe(EVALUATION, values, tuple(inputs))

    def _limits(self) -> dict[str, int]:
        return {"prompt_tokens": self.study.prompt_tokens, "answer_tokens": self.study.answer_tokens}

    def _common(self) -> dict[str, Any]:
        return {
            "host": {"dtype": self.host_params.dtype},
            "programs": self.programs.model_dump(mode="json"),
            "larc": self.larc.model_dump(mode="json"),
            "module": self.study.module,
        }
