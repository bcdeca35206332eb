"""Public programs to choose from: families, groups and splits, execution, prompts and the symbolic rule."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.programs.candidates import Candidate, Family, Step, Value, error_fractions, execute
    from tasks.programs.episodes import Episode, Support, episodes, query_errors, rule_choice, support
    from tasks.programs.groups import RECIPES, Group, groups
    from tasks.programs.params import ArithmeticParams, ListParams, ProgramsParams, Split
    from tasks.programs.prompts import answer, feedback_prompt, prompt
    from tasks.programs.streams import seed_of, stream

__all__ = [
    "RECIPES",
    "ArithmeticParams",
    "Candidate",
    "Episode",
    "Family",
    "Group",
    "ListParams",
    "ProgramsParams",
    "Split",
    "Step",
    "Support",
    "Value",
    "answer",
    "episodes",
    "error_fractions",
    "execute",
    "feedback_prompt",
    "groups",
    "prompt",
    "query_errors",
    "rule_choice",
    "seed_of",
    "stream",
    "support",
]

export_lazily(__name__)
