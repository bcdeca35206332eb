"""The compiler: one fixed program skeleton, in which only the operation differs.

The skeleton takes two arguments, applies one operation and returns. Which operation is the controller's
choice; the operands are parsed from the text and passed as arguments, so a program does not depend on them.
"""

from enum import StrEnum

from tasks.skills.program import Division, Instruction, Opcode, Program

STEP_LIMIT = 64


class Operation(StrEnum):
    """The five skills; each is published as `skill/<operation>`."""

    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    DIVIDE = "divide"
    MODULO = "modulo"


OPERATIONS = tuple(Operation)
"""In the order of the controller's outputs."""


def compile_operation(operation: Operation, division: Division) -> Program:
    """The program of an operation."""
    code = (
        Instruction(Opcode.ARGUMENT, 0),
        Instruction(Opcode.ARGUMENT, 1),
        Instruction(Opcode(operation.value)),
        Instruction(Opcode.RETURN),
    )
    return Program(2, division, STEP_LIMIT, code)
