"""Per-sample results of the skills: one row for each task and condition."""

import re
from dataclasses import dataclass

from tasks.skills.answer import Answer
from tasks.skills.render import Interface, Renderer
from tasks.skills.tasks import SkillTask

STANDALONE, EXTERNAL, INTERVENTION = "standalone", "external-skill", "intervention"
"""Families, whose results are never mixed."""
_INTEGER = re.compile(r"[+-]?\d+")


@dataclass(frozen=True)
class SkillSample:
    """One task, answered by the core with a result returned by one interface.

    `answer` is the true value; `returned` the one that was attached (0 where none was, see `attached`),
    `differs` whether it is another than the true one. The output is compared with the *expected* value: the
    true one, or in interventions the attached one. `strict`, `token_sequence` and `first_integer` judge what
    the core wrote before its own end: the whole text, its tokens, the first signed integer in it; `stopped`
    tells whether it ended right after as many tokens as the expected value has. The `declared_` ones judge
    the first so many tokens instead, `declared_stopped` that no end was among them. `stays` tells whether the
    text is the true value. `nll` is in nats per expected token, the end among them.
    """

    task: str
    range: str
    family: str
    interface: str
    substitute: str
    phrasing: str
    prompt: str
    operation: str
    routed: str
    operands_right: bool
    first: int
    second: int
    answer: int
    attached: bool
    returned: int
    differs: bool
    expected_tokens: int
    nll: float
    written: str
    strict: bool
    token_sequence: bool
    first_integer: bool
    stopped: bool
    declared_strict: bool
    declared_token_sequence: bool
    declared_first_integer: bool
    declared_stopped: bool
    stays: bool


@dataclass(frozen=True)
class Asked:
    """A task with what the pipeline made of it, and the value that was returned to the core."""

    task: SkillTask
    range_: str
    routed: str
    operands_right: bool
    returned: int | None
    substitute: str = ""

    def expected(self, family: str) -> int:
        """The value that the output is compared with."""
        substituted = family == INTERVENTION and self.returned is not None
        return self.returned if substituted and self.returned is not None else self.task.answer


def judge(asked: Asked, family: str, interface: Interface, renderer: Renderer, answer: Answer) -> SkillSample:
    """Compare what the core wrote with what it should have written."""
    task, value = asked.task, asked.expected(family)
    returned = None if interface is Interface.NONE else asked.returned
    expected = renderer.answer(value)
    count = len(expected)
    learned, declared = answer.written[: answer.length], answer.written[:count]
    text, declared_text = renderer.text(learned), renderer.text(declared)
    return SkillSample(
        task=task.name,
        range=asked.range_,
        family=family,
        interface=interface.value,
        substitute=asked.substitute,
        phrasing=task.phrasing,
        prompt=task.prompt,
        operation=task.operation.value,
        routed=asked.routed,
        operands_right=asked.operands_right,
        first=task.first,
        second=task.second,
        answer=task.answer,
        attached=returned is not None,
        returned=returned or 0,
        differs=returned is not None and returned != task.answer,
        expected_tokens=count,
        nll=answer.nll,
        written=text,
        strict=text == str(value),
        token_sequence=learned.tolist() == expected.tolist(),
        first_integer=first_integer(text) == str(value),
        stopped=answer.length == count,
        declared_strict=declared_text == str(value),
        declared_token_sequence=declared.tolist() == expected.tolist(),
        declared_first_integer=first_integer(declared_text) == str(value),
        declared_stopped=answer.length >= count,
        stays=text == str(task.answer),
    )


def first_integer(text: str) -> str:
    """The first signed integer of a text in its plain form, "" if there is none."""
    found = _INTEGER.search(text)
    if found is None:
        return ""
    sign = "-" if found.group().startswith("-") else ""
    digits = found.group().lstrip("+-").lstrip("0")
    return sign + digits if digits else "0"
