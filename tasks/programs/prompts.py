"""Prompts: the public configuration and the four candidates, with or without the feedback in words."""

from tasks.programs.candidates import Candidate, Family, Value
from tasks.programs.episodes import Support
from tasks.programs.groups import Group

_ASK = "Program:"


def prompt(group: Group) -> str:
    """What a policy reads: family, configuration and candidates in fixed order; no example, no feedback."""
    return "\n".join([*_head(group), _ASK])


def feedback_prompt(group: Group, feedback: Support) -> str:
    """The same with the feedback in words: the support inputs, and what each candidate got right."""
    inputs = "; ".join(map(_value, feedback.inputs))
    count = len(feedback.inputs)
    tests = [
        f"{number}. {' '.join('wrong' if one else 'right' for one in row)}, {sum(row)} of {count} wrong"
        for number, row in enumerate(feedback.wrong, start=1)
    ]
    return "\n".join([*_head(group), f"Test inputs: {inputs}", "Results:", *tests, _ASK])


def answer(candidate: Candidate) -> str:
    """A candidate as the continuation of a prompt; the end of sequence follows it."""
    return f" {candidate.text}"


def _head(group: Group) -> list[str]:
    listed = [f"{number}. {one.text}" for number, one in enumerate(group.candidates, start=1)]
    return [f"Family: {group.family}", _configuration(group), "Candidates:", *listed]


def _configuration(group: Group) -> str:
    if group.family is Family.ARITHMETIC:
        return f"Scale {group.first}, offset {group.second}, clip {-group.clip} {group.clip}"
    suffix = " ".join(map(str, group.suffix))
    return f"Minimum {group.first}, limit {group.second}, suffix {suffix}"


def _value(value: Value) -> str:
    return str(value) if isinstance(value, int) else " ".join(map(str, value))
