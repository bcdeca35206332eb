"""Arithmetic tasks: a prompt, its operation and operands, and the true answer, computed without the machine.

Prompts mix digits and words, symbols and phrases, signs and magnitudes. Training, validation and test use
phrasings of their own; the test has one set of operands inside the training range and one from a disjoint
range. Inside the training range a fixed tenth of all operand pairs is never trained on.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.skills.compiler import Operation
from tasks.skills.numerals import to_words
from tasks.skills.params import Magnitudes, PhraseParams
from tasks.skills.phrasing import Phrasing, Split, phrasings
from tasks.skills.program import Division

Range = Literal["train", "validation", "disjoint"]
_HELD_OUT = 10


@dataclass(frozen=True)
class SkillTask:
    """Ask `prompt`, worded as `phrasing`: it means `operation` of `first` and `second`, which is `answer`."""

    name: str
    prompt: str
    phrasing: str
    operation: Operation
    first: int
    second: int
    answer: int


@dataclass(frozen=True)
class TaskMaker:
    """Tasks of a split and a range, each a pure function of seed, purpose and number."""

    params: PhraseParams
    division: Division
    split: Split
    range_: Range

    def make(self, count: int, *, seed: int) -> list[SkillTask]:
        """`count` tasks; operations take turns, phrasings and operands are drawn."""
        rng = np.random.default_rng([self.params.seed, seed, _number(self.split), _number(self.range_)])
        by_operation: dict[Operation, list[Phrasing]] = {operation: [] for operation in Operation}
        for phrasing in phrasings(self.split):
            by_operation[phrasing.operation].append(phrasing)
        tasks = []
        for number in range(count):
            operation = list(Operation)[number % len(Operation)]
            choices = by_operation[operation]
            tasks.append(self._task(rng, choices[int(rng.integers(len(choices)))], number))
        return tasks

    def _task(self, rng: np.random.Generator, phrasing: Phrasing, number: int) -> SkillTask:
        bounds: Magnitudes = getattr(self.params, self.range_)
        while True:
            first, second = (self._operand(rng, bounds) for _ in range(2))
            divides = phrasing.operation in (Operation.DIVIDE, Operation.MODULO)
            trained = self.range_ == "train" and (self.split == "train") == held_out(first, second)
            if not (divides and second == 0) and not trained:
                break
        prompt = phrasing.template.format(a=self._write(rng, first), b=self._write(rng, second))
        answer = true_answer(phrasing.operation, first, second, self.division)
        name = f"{self.range_}/{number:05d}"
        return SkillTask(name, prompt, phrasing.name, phrasing.operation, first, second, answer)

    def _operand(self, rng: np.random.Generator, bounds: Magnitudes) -> int:
        digits = int(rng.integers(len(str(bounds.low)), len(str(bounds.high)) + 1))
        low = max(bounds.low, 10 ** (digits - 1) if digits > 1 else 0)
        magnitude = int(rng.integers(low, min(bounds.high, 10**digits - 1) + 1))
        return -magnitude if rng.random() < self.params.negative else magnitude

    def _write(self, rng: np.random.Generator, value: int) -> str:
        if rng.random() < self.params.in_words:
            sign = str(rng.choice(["minus ", "negative "])) if value < 0 else ""
            return sign + to_words(abs(value))
        return f"{value:,}" if rng.random() < 0.15 else str(value)


def held_out(first: int, second: int) -> bool:
    """Whether a pair of operands belongs to the tenth that is never trained on."""
    digest = hashlib.sha256(f"{first} {second}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % _HELD_OUT == 0


def true_answer(operation: Operation, first: int, second: int, division: Division) -> int:
    """What an operation gives, by Python's own integers; the second operand of a division is not 0."""
    if operation is Operation.ADD:
        return first + second
    if operation is Operation.SUBTRACT:
        return first - second
    if operation is Operation.MULTIPLY:
        return first * second
    quotient = first // second
    if division is Division.TRUNCATE:
        quotient = abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
    return quotient if operation is Operation.DIVIDE else first - second * quotient


def _number(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
