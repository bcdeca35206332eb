"""Programs as data: a list of opcodes with operands, checked when it is loaded, never code of the host.

A program is the payload of a `skill` element: canonical JSON with its arity, the convention by which it
divides, its step limit, and its code. One instruction is ``[opcode]`` or ``[opcode, operand]``.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from store import canonical_json
from tasks.errors import BadPayload, BadProgram

SMALLEST, LARGEST = -(2**63), 2**63 - 1
"""Bounds of every number that a program holds."""
FORMAT = "cellar.skill/1"
MEDIA = "application/json"
MAX_CODE = 4096
MAX_ARITY = 16
MAX_STEPS = 1_000_000
MAX_BYTES = 1 << 20
_FIELDS = frozenset({"arity", "code", "division", "format", "step_limit"})
_UNREADABLE = (ValueError, TypeError, RecursionError)


class Division(StrEnum):
    """How quotients are rounded; the remainder fits: ``a = b * quotient + remainder``."""

    TRUNCATE = "truncate"
    """Towards zero: -7 / 2 = -3, remainder -1."""
    FLOOR = "floor"
    """Towards minus infinity: -7 / 2 = -4, remainder 1."""


class Opcode(StrEnum):
    """What an instruction does; `a` and `b` are the two topmost numbers, `b` on top."""

    PUSH = "push"
    """Push the operand."""
    ARGUMENT = "argument"
    """Push the argument of that number, from 0."""
    DUPLICATE = "duplicate"
    DROP = "drop"
    SWAP = "swap"
    OVER = "over"
    """Push `a` again."""
    NEGATE = "negate"
    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    DIVIDE = "divide"
    MODULO = "modulo"
    LESS = "less"
    """1 if `a < b`, else 0."""
    EQUAL = "equal"
    JUMP = "jump"
    """Go on at the instruction of that number, from 0."""
    JUMP_IF_ZERO = "jump_if_zero"
    """Take the topmost number; go on there if it is 0."""
    RETURN = "return"
    """End with the topmost number."""


WITH_OPERAND = frozenset({Opcode.PUSH, Opcode.ARGUMENT, Opcode.JUMP, Opcode.JUMP_IF_ZERO})
TAKES = {
    **dict.fromkeys((Opcode.PUSH, Opcode.ARGUMENT, Opcode.JUMP), 0),
    **dict.fromkeys((Opcode.DUPLICATE, Opcode.DROP, Opcode.NEGATE, Opcode.JUMP_IF_ZERO, Opcode.RETURN), 1),
    **dict.fromkeys((Opcode.SWAP, Opcode.OVER, Opcode.LESS, Opcode.EQUAL), 2),
    **dict.fromkeys((Opcode.ADD, Opcode.SUBTRACT, Opcode.MULTIPLY, Opcode.DIVIDE, Opcode.MODULO), 2),
}
"""Numbers that must lie on the stack."""


@dataclass(frozen=True)
class Instruction:
    """One step of a program; `operand` only for the opcodes of `WITH_OPERAND`."""

    opcode: Opcode
    operand: int | None = None

    def __str__(self) -> str:
        return self.opcode.value if self.operand is None else f"{self.opcode.value} {self.operand}"


@dataclass(frozen=True)
class Program:
    """A program that was checked: every operand is in bounds, every jump lands inside the code."""

    arity: int
    division: Division
    step_limit: int
    code: tuple[Instruction, ...]

    def __post_init__(self) -> None:
        _require(
            type(self.arity) is int and 0 <= self.arity <= MAX_ARITY, f"its arity is not 0 to {MAX_ARITY}"
        )
        limit = self.step_limit
        _require(type(limit) is int and 1 <= limit <= MAX_STEPS, f"its step limit is not 1 to {MAX_STEPS}")
        _require(1 <= len(self.code) <= MAX_CODE, f"it has not 1 to {MAX_CODE} instructions")
        for number, instruction in enumerate(self.code):
            _check(instruction, number, self.arity, len(self.code))

    def to_bytes(self) -> bytes:
        """Canonical JSON: equal programs have equal bytes."""
        code = [[i.opcode.value] if i.operand is None else [i.opcode.value, i.operand] for i in self.code]
        return canonical_json(
            {
                "arity": self.arity,
                "code": code,
                "division": self.division.value,
                "format": FORMAT,
                "step_limit": self.step_limit,
            }
        )


def load_program(payload: bytes) -> Program:
    """The program in a payload.

    Raises `BadPayload` unless the bytes are exactly what `Program.to_bytes` writes for a valid program.
    """
    try:
        program = _read(payload)
        _require(program.to_bytes() == payload, "it is not written in canonical form")
    except _UNREADABLE as error:
        raise BadPayload(f"the payload is no skill program: {_reason(error)}; check the reference") from error
    return program


def parse_program(text: bytes) -> Program:
    """The program that somebody wrote as JSON, in any layout; raises `BadProgram` with what is wrong."""
    try:
        return _read(text)
    except _UNREADABLE as error:
        what = _reason(error)
        raise BadProgram(
            f"this is no skill program: {what}; `cellar skill show divide --json` shows one"
        ) from error


def _read(payload: bytes) -> Program:
    _require(len(payload) <= MAX_BYTES, f"it is larger than {MAX_BYTES} bytes")
    record = json.loads(payload)
    _require(isinstance(record, dict), "it is no JSON object")
    _require(record.get("format") == FORMAT, f"its format is not {FORMAT}")
    unknown = sorted(record.keys() - _FIELDS)
    _require(not unknown, f"it has a field {unknown[:1]} that means nothing")
    missing = sorted(_FIELDS - record.keys())
    _require(not missing, f"it lacks {' and '.join(missing)}")
    _require(isinstance(record["code"], list), "its code is no list")
    _require(len(record["code"]) <= MAX_CODE, f"it has more than {MAX_CODE} instructions")
    code = tuple(_instruction(part) for part in record["code"])
    return Program(record["arity"], Division(record["division"]), record["step_limit"], code)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _instruction(part: Any) -> Instruction:
    _require(
        isinstance(part, list) and len(part) in (1, 2), "an instruction is not [opcode] or [opcode, operand]"
    )
    return Instruction(Opcode(part[0]), *part[1:])


def _check(instruction: Instruction, number: int, arity: int, length: int) -> None:
    opcode, operand = instruction.opcode, instruction.operand
    where = f"instruction {number}, {opcode.value},"
    if opcode not in WITH_OPERAND:
        _require(operand is None, f"{where} takes no operand")
        return
    if type(operand) is not int:  # True is an instance of int
        raise ValueError(f"{where} needs a whole number as operand")
    if opcode is Opcode.PUSH:
        _require(SMALLEST <= operand <= LARGEST, f"{where} pushes a number outside 64 bits")
    elif opcode is Opcode.ARGUMENT:
        _require(0 <= operand < arity, f"{where} names an argument that there is not")
    else:
        _require(0 <= operand < length, f"{where} leads outside the code")


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)
