"""Episodes: one recipe of a group as the target, inputs that give feedback, and new ones that score a choice.

What gives feedback and what scores are two functions: whoever predicts calls the first one alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.programs.candidates import Family, Value, error_fractions
from tasks.programs.groups import RECIPES, Group
from tasks.programs.params import ProgramsParams
from tasks.programs.streams import stream


@dataclass(frozen=True)
class Episode:
    """A target among a group's programs; `draw` counts the visits of a training, each with new inputs."""

    group: Group
    recipe: int
    draw: int = 0

    @property
    def name(self) -> str:
        """Its name among all episodes, e.g. arithmetic/2/3/recipe-0."""
        visit = f"/visit-{self.draw}" if self.draw else ""
        return f"{self.group.name}/recipe-{self.recipe}{visit}"


@dataclass(frozen=True)
class Support:
    """Feedback: a few inputs, and for each candidate which of them it got wrong."""

    inputs: tuple[Value, ...]
    wrong: tuple[tuple[bool, ...], ...]

    @property
    def errors(self) -> tuple[float, ...]:
        """The execution error fraction of each candidate."""
        return tuple(sum(row) / len(row) for row in self.wrong)


def episodes(found: Sequence[Group], *, draw: int = 0) -> list[Episode]:
    """All recipes of all groups, in their order."""
    return [Episode(group, recipe, draw) for group in found for recipe in range(RECIPES)]


def support(episode: Episode, params: ProgramsParams) -> Support:
    """The feedback of an episode."""
    inputs = _inputs(episode, params)[: params.support]
    candidates = episode.group.candidates
    target = candidates[episode.recipe]
    by_input = [error_fractions(candidates, target, [value]) for value in inputs]
    return Support(inputs, tuple(tuple(map(bool, row)) for row in zip(*by_input, strict=True)))


def query_errors(episode: Episode, params: ProgramsParams) -> tuple[float, ...]:
    """The execution error fraction of each candidate on the query's inputs, none of which gave feedback."""
    candidates = episode.group.candidates
    inputs = _inputs(episode, params)[params.support :]
    return error_fractions(candidates, candidates[episode.recipe], inputs)


def rule_choice(errors: Sequence[float]) -> int:
    """The symbolic rule: the candidate of the lowest support error; of several the first."""
    return min(range(len(errors)), key=errors.__getitem__)


def _inputs(episode: Episode, params: ProgramsParams) -> tuple[Value, ...]:
    """Different inputs, drawn uniformly and taken as they come, whatever they tell of the target (ours)."""
    rng = stream(params.seed, "inputs", episode.name)
    count = params.support + params.query
    if episode.group.family is Family.ARITHMETIC:
        bound = params.arithmetic.magnitude
        drawn = rng.choice(2 * bound + 1, size=count, replace=False) - bound
        return tuple(drawn.tolist())
    bound, found = params.lists.magnitude, dict[Value, None]()
    while len(found) < count:
        found[tuple(rng.integers(-bound, bound + 1, size=params.lists.entries).tolist())] = None
    return tuple(found)
