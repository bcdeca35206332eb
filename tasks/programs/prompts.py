"""Prompts: the public configuration and the four candidates, with or without the feedback in words."""

from tasks.programs.candidates import Candidate, Family, Value
from tasks.programs.episodes import Support
from tasks.programs.groups import Group
from tasks.programs.params import ProgramsParams

_ASK = "Program:"


def prompt(group: Group, params: ProgramsParams) -> str:
    """What a policy reads: family, configuration and candidates in fixed order; no example, no feedback."""
    return "\n".join([*_head(group, params), _ASK])


def feedback_prompt(group: Group, params: ProgramsParams, feedback: Support) -> str:
    """The same with the feedback in words: the support inputs, and what each candidate got right."""
    inputs = "; ".join(map(_value, feedback.inputs))
    count = len(feedback.inputs)
    tests = [
        f"{number}. {' '.join('wrong' if one else 'right' for one in row)}, {sum(row)} of {count} wrong"
        for number, row in enumerate(feedback.wrong, start=1)
    ]
    return "\n".join([*_head(group, params), f"Test inputs: {inputs}", "Results:", *tests, _ASK])


def answer(candidate: Candidate) -> str:
    """A candidate as the continuation of a prompt; the end of sequence follows it."""
    return f" {candidate.text}"


def _head(group: Group, params: ProgramsParams) -> list[str]:
    listed = [f"{number}. {one.text}" for number, one in enumerate(group.candidates, start=1)]
    return [f"Family: {group.family}", _configuration(group, params), "Candidates:", *listed]


def _configuration(group: Group, params: ProgramsParams) -> str:
    if group.family is Family.ARITHMETIC:
        bound = params.arithmetic.magnitude
        return (
            f"Input: a whole number from {-bound} to {bound}\nScale {group.first}, offset {group.second}, "
            f"clip {-group.clip} {group.clip}"
        )
    bound = params.lists.magnitude
    return (
        f"Input: {params.lists.entries} whole numbers from {-bound} to {bound}\nMinimum {group.first}, limit "
        f"{group.second}, suffix {' '.join(map(str, group.suffix))}"
    )


def _value(value: Value) -> str:
    return str(value) if isinstance(value, int) else " ".join(map(str, value))
