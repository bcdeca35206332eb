"""The machine against Python's own integers, and every way in which a program can end without a value."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.skills import Division, Instruction, Opcode, Operation, Program, Trap, compile_operation, execute
from tasks.skills.machine import STACK_LIMIT
from tasks.skills.program import LARGEST, SMALLEST

EDGES = (SMALLEST, SMALLEST + 1, -2, -1, 0, 1, 2, LARGEST - 1, LARGEST)
NUMBERS = st.one_of(
    st.integers(-100, 100),
    st.sampled_from(EDGES),
    st.integers(SMALLEST, LARGEST),
    st.integers(-(2**32), 2**32),
)
CODES = st.lists(
    st.one_of(
        st.builds(Instruction, st.just(Opcode.PUSH), NUMBERS),
        st.builds(Instruction, st.just(Opcode.ARGUMENT), st.integers(0, 1)),
        st.builds(Instruction, st.sampled_from([Opcode.JUMP, Opcode.JUMP_IF_ZERO]), st.integers(0, 3)),
        st.builds(
            Instruction,
            st.sampled_from(
                [o for o in Opcode if o.value not in ("push", "argument", "jump", "jump_if_zero")]
            ),
        ),
    ),
    min_size=4,
    max_size=20,
)


def code(*instructions: tuple[object, ...], arity: int = 0, limit: int = 50) -> Program:
    made = tuple(Instruction(Opcode(str(opcode)), *rest) for opcode, *rest in instructions)  # type: ignore
    return Program(arity, Division.TRUNCATE, limit, made)


def exact(operation: Operation, a: int, b: int, division: Division) -> int:
    match operation:
        case Operation.ADD:
            return a + b
        case Operation.SUBTRACT:
            return a - b
        case Operation.MULTIPLY:
            return a * b
    ratio = Fraction(a, b)
    quotient = math.trunc(ratio) if division is Division.TRUNCATE else math.floor(ratio)
    return quotient if operation is Operation.DIVIDE else a - b * quotient


@given(st.sampled_from(Operation), NUMBERS, NUMBERS, st.sampled_from(Division))
def test_operations_agree_with_integers_without_bounds_and_trap_outside_them(
    operation: Operation, a: int, b: int, division: Division
) -> None:
    done = execute(compile_operation(operation, division), (a, b))

    if operation in (Operation.DIVIDE, Operation.MODULO) and b == 0:
        assert (done.value, done.trap) == (None, Trap.DIVISION_BY_ZERO)
    elif SMALLEST <= exact(operation, a, b, division) <= LARGEST:
        assert (done.value, done.trap, done.steps) == (exact(operation, a, b, division), None, 4)
    else:
        assert (done.value, done.trap) == (None, Trap.OVERFLOW)


@pytest.mark.parametrize(
    ("division", "quotient", "remainder"), [(Division.TRUNCATE, -3, -1), (Division.FLOOR, -4, 1)]
)
def test_a_convention_rounds_as_its_name_says(division: Division, quotient: int, remainder: int) -> None:
    assert execute(compile_operation(Operation.DIVIDE, division), (-7, 2)).value == quotient
    assert execute(compile_operation(Operation.MODULO, division), (-7, 2)).value == remainder


def test_the_smallest_number_by_minus_one_overflows_and_leaves_no_remainder() -> None:
    assert execute(compile_operation(Operation.DIVIDE, Division.FLOOR), (SMALLEST, -1)).trap is Trap.OVERFLOW
    assert execute(compile_operation(Operation.MODULO, Division.FLOOR), (SMALLEST, -1)).value == 0


@pytest.mark.parametrize(
    ("program", "trap"),
    [
        (code(("add",), ("return",)), Trap.MISSING_OPERAND),
        (code(("push", 1), ("add",)), Trap.MISSING_OPERAND),
        (code(("return",)), Trap.MISSING_OPERAND),
        (code(("push", 1)), Trap.NO_RETURN),
        (code(("jump", 0)), Trap.STEP_LIMIT),
        (code(("push", 1), ("jump", 0), limit=10_000), Trap.STACK_FULL),
        (code(("push", SMALLEST), ("negate",)), Trap.OVERFLOW),
    ],
)
def test_a_program_that_cannot_go_on_traps(program: Program, trap: Trap) -> None:
    done = execute(program, ())
    assert (done.value, done.trap) == (None, trap)


def test_wrong_arguments_trap_before_the_first_step() -> None:
    program = compile_operation(Operation.ADD, Division.FLOOR)
    assert execute(program, (1,)).trap is Trap.ARGUMENTS
    assert execute(program, (1, LARGEST + 1)).trap is Trap.ARGUMENT_BOUNDS
    assert execute(program, (1, LARGEST + 1)).steps == 0


@given(CODES, st.integers(1, 40), NUMBERS, NUMBERS)
def test_any_program_ends_within_its_limit_with_a_number_in_bounds_or_a_trap(
    instructions: list[Instruction], limit: int, a: int, b: int
) -> None:
    program = Program(2, Division.FLOOR, limit, tuple(instructions))

    done = execute(program, (a, b), traced=True)

    assert done == execute(program, (a, b), traced=True)
    assert (done.value is None) != (done.trap is None)
    assert done.steps <= limit
    assert all(len(step.stack) <= STACK_LIMIT for step in done.trace)
    assert all(SMALLEST <= number <= LARGEST for step in done.trace for number in step.stack)


@given(st.integers(0, 60), st.integers(0, 60))
def test_loops_compute(a: int, b: int) -> None:
    """Euclid's algorithm, as data."""
    program = code(
        ("argument", 0),
        ("argument", 1),
        ("duplicate",),
        ("jump_if_zero", 8),
        ("swap",),
        ("over",),
        ("modulo",),
        ("jump", 2),
        ("drop",),
        ("return",),
        arity=2,
        limit=1000,
    )
    assert execute(program, (a, b)).value == math.gcd(a, b)


def test_a_trace_shows_every_step_with_its_stack() -> None:
    trace = execute(compile_operation(Operation.SUBTRACT, Division.FLOOR), (5, 7), traced=True).trace
    assert [(str(step.instruction), step.stack) for step in trace] == [
        ("argument 0", (5,)),
        ("argument 1", (5, 7)),
        ("subtract", (-2,)),
        ("return", (-2,)),
    ]
