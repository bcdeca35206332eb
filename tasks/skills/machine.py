"""The virtual machine: bounded signed integers on a stack, a step limit, and traps instead of wrong numbers.

Every number is a signed 64-bit integer. A result outside these bounds traps and never wraps; division by
zero traps; so do a missing operand, a full stack, an argument outside the bounds, and a program that does
not end. Equal programs and arguments give equal executions: the machine has neither clock nor state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tasks.skills.program import LARGEST, SMALLEST, TAKES, Division, Instruction, Opcode, Program

STACK_LIMIT = 256


class Trap(StrEnum):
    """Why an execution ended without a value, as a sentence says it."""

    OVERFLOW = "the result lies outside signed 64-bit integers"
    DIVISION_BY_ZERO = "division by zero"
    MISSING_OPERAND = "an instruction needs more numbers than lie on the stack"
    STACK_FULL = "more numbers than the stack holds"
    ARGUMENTS = "the program takes another number of arguments"
    ARGUMENT_BOUNDS = "an argument lies outside signed 64-bit integers"
    STEP_LIMIT = "the step limit was reached before the program ended"
    NO_RETURN = "the program ran past its last instruction without returning"


@dataclass(frozen=True)
class Step:
    """One executed instruction: its number in the code, and the stack after it, the top last."""

    number: int
    instruction: Instruction
    stack: tuple[int, ...]


@dataclass(frozen=True)
class Execution:
    """What became of a program: a value, or the trap that it ended in, and the steps taken up to there."""

    value: int | None
    trap: Trap | None
    steps: int
    trace: tuple[Step, ...] = ()
    trapped_at: int | None = None
    """The number of the instruction that trapped, from 0; one past the last where there was none."""


class _Trapped(Exception):
    def __init__(self, trap: Trap) -> None:
        super().__init__(trap)
        self.trap = trap


def execute(program: Program, arguments: Sequence[int], *, traced: bool = False) -> Execution:
    """Run a program on arguments; `traced` keeps every step with its stack."""
    if len(arguments) != program.arity:
        return Execution(None, Trap.ARGUMENTS, 0)
    if not all(SMALLEST <= argument <= LARGEST for argument in arguments):
        return Execution(None, Trap.ARGUMENT_BOUNDS, 0)
    stack: list[int] = []
    trace: list[Step] = []
    place = steps = 0
    try:
        while True:
            if place >= len(program.code):
                raise _Trapped(Trap.NO_RETURN)
            if steps >= program.step_limit:
                raise _Trapped(Trap.STEP_LIMIT)
            instruction, number = program.code[place], place
            steps += 1
            place = _do(instruction, place, stack, arguments, program.division)
            if traced:
                trace.append(Step(number, instruction, tuple(stack)))
            if instruction.opcode is Opcode.RETURN:
                return Execution(stack[-1], None, steps, tuple(trace))
    except _Trapped as ended:
        return Execution(None, ended.trap, steps, tuple(trace), place)


def divide(a: int, b: int, division: Division) -> tuple[int, int]:
    """Quotient and remainder by a convention; `b` is not 0."""
    quotient, remainder = a // b, a % b
    if division is Division.TRUNCATE and remainder and (a < 0) != (b < 0):
        return quotient + 1, remainder - b
    return quotient, remainder


def _do(
    instruction: Instruction, place: int, stack: list[int], arguments: Sequence[int], division: Division
) -> int:
    """Execute one instruction on the stack and return the place of the next."""
    opcode, operand = instruction.opcode, instruction.operand
    if len(stack) < TAKES[opcode]:
        raise _Trapped(Trap.MISSING_OPERAND)
    match opcode:
        case Opcode.PUSH | Opcode.ARGUMENT:
            assert operand is not None, "programs are checked when they are made"
            _push(stack, operand if opcode is Opcode.PUSH else arguments[operand])
        case Opcode.DUPLICATE:
            _push(stack, stack[-1])
        case Opcode.OVER:
            _push(stack, stack[-2])
        case Opcode.DROP:
            stack.pop()
        case Opcode.SWAP:
            stack[-1], stack[-2] = stack[-2], stack[-1]
        case Opcode.NEGATE:
            _push(stack, -stack.pop())
        case Opcode.JUMP:
            assert operand is not None
            return operand
        case Opcode.JUMP_IF_ZERO:
            assert operand is not None
            return operand if stack.pop() == 0 else place + 1
        case Opcode.RETURN:
            pass
        case _:
            b, a = stack.pop(), stack.pop()
            _push(stack, _BINARY[opcode](a, b, division))
    return place + 1


def _push(stack: list[int], value: int) -> None:
    if not SMALLEST <= value <= LARGEST:
        raise _Trapped(Trap.OVERFLOW)
    if len(stack) >= STACK_LIMIT:
        raise _Trapped(Trap.STACK_FULL)
    stack.append(value)


def _divided(a: int, b: int, division: Division) -> tuple[int, int]:
    if b == 0:
        raise _Trapped(Trap.DIVISION_BY_ZERO)
    return divide(a, b, division)


_BINARY: dict[Opcode, Callable[[int, int, Division], int]] = {
    Opcode.ADD: lambda a, b, _: a + b,
    Opcode.SUBTRACT: lambda a, b, _: a - b,
    Opcode.MULTIPLY: lambda a, b, _: a * b,
    Opcode.DIVIDE: lambda a, b, division: _divided(a, b, division)[0],
    Opcode.MODULO: lambda a, b, division: _divided(a, b, division)[1],
    Opcode.LESS: lambda a, b, _: int(a < b),
    Opcode.EQUAL: lambda a, b, _: int(a == b),
}
