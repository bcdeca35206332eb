"""The same tasks beside two snapshots: what a replacement concerns, and everything else."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.evaluation import AttachmentTask, EvaluationParams, EvaluationSetting, Evaluator, Plan, Sample
from tasks.progress import Progress
from tasks.replacement.dependents import changed


@dataclass(frozen=True)
class Results:
    """Results before and after in one order, how many differ among the tasks that nothing concerns, and
    seconds."""

    before: list[Sample]
    after: list[Sample]
    elsewhere_changed: int
    seconds: dict[str, float]


@dataclass(frozen=True)
class Pair:
    """The same tasks beside two snapshots."""

    before: EvaluationSetting
    after: EvaluationSetting
    tasks: list[AttachmentTask]
    plan: Plan
    other_plan: Plan
    params: EvaluationParams

    def run(self, near: Sequence[bool], progress: Progress) -> Results:
        """All results of both, and how long what depends on the element took beside everything else.

        Tasks that it concerns are scored one by one, because what stands beside a task in a batch may change
        its last bits; the others in batches of each other, the same ones both times.
        """
        samples: list[list[Sample]] = [[], []]
        seconds: dict[str, float] = {}
        elsewhere: list[list[Sample]] = [[], []]
        finished, everything = 0, 2 * len(self.tasks) * len(self.plan)
        for side, (setting, plan) in enumerate(((self.before, self.plan), (self.after, self.other_plan))):
            reader = setting.reader(plan, self.params)
            for concerned_ones, batch in ((True, 1), (False, self.params.batch_tasks)):
                chosen = [number for number, is_near in enumerate(near) if is_near == concerned_ones]
                tasks = [self.tasks[number] for number in chosen]
                shown = {c: [placements[n] for n in chosen] for c, placements in plan.items()}
                began = time.perf_counter()
                evaluator = Evaluator(setting.core, reader, setting.tokenizer.decode, batch)
                found, _ = evaluator.run(tasks, shown, _after(finished, everything, progress))
                finished += len(found)
                label = "dependents" if concerned_ones else "elsewhere"
                seconds[f"{label}_{('before', 'after')[side]}"] = time.perf_counter() - began
                samples[side] += found
                if not concerned_ones:
                    elsewhere[side] += found
        differing = changed(zip(*elsewhere, strict=True))
        return Results(samples[0], samples[1], len(differing), seconds)


def _after(finished: int, everything: int, progress: Progress) -> Progress:
    """A progress that goes on after what is finished."""

    def report(done: int, total: int, **figures: float) -> None:
        progress(finished + done, everything, **figures)

    return report
