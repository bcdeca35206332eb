"""Programs are data: they read back as written, and whatever else the bytes hold is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import canonical_json
from tasks.errors import BadPayload
from tasks.skills import OPERATIONS, Division, Program, compile_operation, load_program
from tasks.skills.compiler import Operation
from tests.tasks.forging import JSON_VALUES, changed_bytes

PAYLOAD = compile_operation(Operation.DIVIDE, Division.TRUNCATE).to_bytes()


def load_or_refuse(payload: bytes) -> Program | None:
    try:
        return load_program(payload)
    except BadPayload:
        return None


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("division", Division)
def test_a_program_reads_back(operation: Operation, division: Division) -> None:
    program = compile_operation(operation, division)
    assert load_program(program.to_bytes()) == program


@given(changed_bytes(PAYLOAD))
def test_changed_bytes_are_refused_or_are_another_program_in_canonical_form(payload: bytes) -> None:
    program = load_or_refuse(payload)
    assert program is None or program.to_bytes() == payload


@given(st.sampled_from(["arity", "code", "division", "format", "step_limit"]), JSON_VALUES)
def test_a_field_of_another_kind_is_refused(field: str, value: Any) -> None:
    try:
        payload = canonical_json({**json.loads(PAYLOAD), field: value})
    except ValueError:
        return  # canonical JSON has no such number
    program = load_or_refuse(payload)
    assert program is None or program.to_bytes() == payload


CODE = [["argument", 0], ["argument", 1], ["divide"], ["return"]]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"code": []}, "1 to 4096 instructions"),
        ({"code": [["return"]] * 5000}, "more than 4096"),
        ({"code": [["system", 1]]}, "system"),
        ({"code": [["push"]]}, "needs a whole number"),
        ({"code": [["push", True]]}, "needs a whole number"),
        ({"code": [["push", 1.0]]}, "needs a whole number"),
        ({"code": [["push", 2**63]]}, "outside 64 bits"),
        ({"code": [["argument", 2]]}, "an argument that there is not"),
        ({"code": [["jump", 1]]}, "leads outside the code"),
        ({"code": [["jump", -1]]}, "leads outside the code"),
        ({"code": [["add", 1]]}, "takes no operand"),
        ({"code": [["push", 1, 2]]}, r"is not \[opcode\]"),
        ({"code": ["return"]}, r"is not \[opcode\]"),
        ({"arity": -1}, "arity"),
        ({"arity": True}, "arity"),
        ({"step_limit": 10**9}, "step limit"),
        ({"division": "round"}, "round"),
        ({"format": "cellar.skill/2"}, "format"),
        ({"more": 1}, "means nothing"),
    ],
)
def test_what_a_program_must_not_hold_is_named(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadPayload, match=reason):
        load_program(canonical_json({**json.loads(PAYLOAD), **change}))


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"null", b"{", b"[" * 100_000, b"9" * 5_000, b'{"code": NaN}', b"\xff", b" " + PAYLOAD],
)
def test_other_bytes_are_refused(payload: bytes) -> None:
    with pytest.raises(BadPayload, match="the payload is no skill program"):
        load_program(payload)
