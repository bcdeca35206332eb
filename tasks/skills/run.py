"""Running every condition over the tasks of every range: only what is returned to the core differs."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.assembly import ResidualCore
from tasks.progress import Progress, silent
from tasks.skills.answer import ReadPrompts, answer, read_prompts
from tasks.skills.compiler import Operation
from tasks.skills.interventions import substitutes
from tasks.skills.pipeline import Pipeline
from tasks.skills.program import Program
from tasks.skills.render import Interface, Renderer
from tasks.skills.samples import EXTERNAL, INTERVENTION, STANDALONE, Asked, SkillSample, judge
from tasks.skills.tasks import SkillTask

RETURNING = (Interface.POSITIONAL, Interface.COMBINED, Interface.GLOBAL)


@dataclass(frozen=True)
class SkillEvaluator:
    """A frozen core and the pipeline that returns values to it."""

    core: ResidualCore
    renderer: Renderer
    pipeline: Pipeline

    def run(
        self, tasks: Mapping[str, Sequence[SkillTask]], *, seed: int, progress: Progress = silent
    ) -> tuple[list[SkillSample], dict[str, float]]:
        """Samples by range, condition and task; and the seconds that each condition took over all ranges.

        `progress` counts task-conditions.
        """
        samples: list[SkillSample] = []
        seconds: dict[str, float] = {}
        total = sum(len(group) for group in tasks.values()) * (1 + 2 * len(RETURNING))
        for range_, group in tasks.items():
            began = time.perf_counter()
            asked = self._ask(group, range_)
            changed = self._substituted(asked, self.pipeline.programs, seed)
            seconds["pipeline"] = seconds.get("pipeline", 0.0) + time.perf_counter() - began
            prompts = read_prompts(self.core, [self.renderer.prompt(task.prompt) for task in group])
            conditions = [(STANDALONE, Interface.NONE, asked)]
            conditions += [(EXTERNAL, interface, asked) for interface in RETURNING]
            conditions += [(INTERVENTION, interface, changed) for interface in RETURNING]
            for family, interface, shown in conditions:
                began = time.perf_counter()
                samples += self._condition(prompts, family, interface, shown)
                name = f"{family}/{interface.value}"
                seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - began
                progress(len(samples), total)
        return samples, seconds

    def _ask(self, tasks: Sequence[SkillTask], range_: str) -> list[Asked]:
        """What the pipeline returns for each prompt; it is told nothing but the prompt."""
        return [
            Asked(
                task,
                range_,
                routed.operation.value,
                (routed.operands.first, routed.operands.second) == (task.first, task.second),
                routed.execution.value,
            )
            for task, routed in zip(tasks, self.pipeline.run([t.prompt for t in tasks]), strict=True)
        ]

    @staticmethod
    def _substituted(asked: Sequence[Asked], programs: Mapping[Operation, Program], seed: int) -> list[Asked]:
        found = substitutes([one.task for one in asked], programs, seed=seed)
        return [
            Asked(one.task, one.range_, one.routed, one.operands_right, value, kind)
            for one, (kind, value) in zip(asked, found, strict=True)
        ]

    def _condition(
        self, prompts: ReadPrompts, family: str, interface: Interface, asked: Sequence[Asked]
    ) -> list[SkillSample]:
        returned = [None if interface is Interface.NONE else one.returned for one in asked]
        results = [None if value is None else self.renderer.answer(value) for value in returned]
        expected = [self.renderer.answer(one.expected(family)) for one in asked]
        answers = answer(self.core, self.renderer, prompts, interface, results, expected)
        return [
            judge(one, family, interface, self.renderer, found)
            for one, found in zip(asked, answers, strict=True)
        ]
