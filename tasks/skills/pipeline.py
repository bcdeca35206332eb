"""From a phrase to a returned value: parse the operands, choose the skill, execute its program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.corpus import Tokenizer
from tasks.skills.compiler import OPERATIONS, Operation
from tasks.skills.controller import Controller
from tasks.skills.machine import Execution, execute
from tasks.skills.operands import Operands, parse_operands
from tasks.skills.program import Program


@dataclass(frozen=True)
class Routed:
    """A phrase on its way: its operands, the probability of each operation, and what its program did."""

    operands: Operands
    probabilities: Mapping[Operation, float]
    execution: Execution

    @property
    def operation(self) -> Operation:
        """The most likely operation: the one that was executed."""
        return max(OPERATIONS, key=lambda operation: self.probabilities[operation])


@dataclass(frozen=True)
class Pipeline:
    """A controller and the programs that it chooses among."""

    controller: Controller
    tokenizer: Tokenizer
    programs: Mapping[Operation, Program]

    def run(self, phrases: Sequence[str], *, traced: bool = False) -> list[Routed]:
        """Route and execute phrases; raises `BadQuery` for one without two whole numbers."""
        operands = [parse_operands(phrase) for phrase in phrases]
        chances_BO = self.controller.route([parsed.masked for parsed in operands], self.tokenizer)
        return [
            self._one(parsed, chances.tolist(), traced)
            for parsed, chances in zip(operands, chances_BO, strict=True)
        ]

    def _one(self, operands: Operands, chances: Sequence[float], traced: bool) -> Routed:
        probabilities = dict(zip(OPERATIONS, chances, strict=True))
        chosen = max(OPERATIONS, key=lambda operation: probabilities[operation])
        execution = execute(self.programs[chosen], (operands.first, operands.second), traced=traced)
        return Routed(operands, probabilities, execution)
