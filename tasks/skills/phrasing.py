"""How a computation is asked for: expressions in frames, each in one split (ours).

An expression names an operation and its operands; a frame is what stands around it. Frames of the
validation and the test split, and their expressions beyond the shared ones, occur in no training prompt.
"""

from dataclasses import dataclass
from typing import Literal

from tasks.skills.compiler import Operation

Split = Literal["train", "validation", "test"]

A, S, M, D, R = Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY, Operation.DIVIDE, Operation.MODULO

NOUNS: dict[Operation, tuple[str, ...]] = {
    A: (
        "{a} + {b}",
        "{a} plus {b}",
        "the sum of {a} and {b}",
        "{a} added to {b}",
        "{a} and {b} added together",
    ),
    S: (
        "{a} - {b}",
        "{a} minus {b}",
        "the difference of {a} and {b}",
        "{b} subtracted from {a}",
        "{a} less {b}",
    ),
    M: (
        "{a} * {b}",
        "{a} times {b}",
        "the product of {a} and {b}",
        "{a} multiplied by {b}",
        "{a} \u00d7 {b}",
    ),
    D: ("{a} / {b}", "{a} divided by {b}", "the quotient of {a} and {b}", "{a} \u00f7 {b}", "{a} over {b}"),
    R: (
        "{a} % {b}",
        "{a} modulo {b}",
        "{a} mod {b}",
        "the remainder of {a} divided by {b}",
        "the remainder when {a} is divided by {b}",
    ),
}
"""Expressions of every split that are a thing to ask for; `a` is the first operand of the operation."""
ORDERS: dict[Operation, tuple[str, ...]] = {
    A: ("add {a} to {b}", "add {a} and {b}", "increase {a} by {b}"),
    S: ("subtract {b} from {a}", "take {b} away from {a}", "decrease {a} by {b}"),
    M: ("multiply {a} by {b}", "multiply {a} and {b}", "multiply {a} with {b}"),
    D: ("divide {a} by {b}", "divide {b} into {a}"),
    R: ("take {a} modulo {b}", "divide {a} by {b} and give the remainder", "reduce {a} modulo {b}"),
}
"""Expressions of every split that are an order."""
NOUN_FRAMES: dict[Split, tuple[str, ...]] = {
    "train": (
        "{x}",
        "{x} =",
        "what is {x}?",
        "compute {x}",
        "calculate {x}.",
        "please tell me {x}",
        "how much is {x}?",
        "the value of {x} is",
        "find {x}",
        "i need {x} now",
    ),
    "validation": ("evaluate {x}", "what do you get for {x}?", "so, {x} is", "could you work out {x}?"),
    "test": (
        "give me {x}",
        "what does {x} come to?",
        "quick question: {x}?",
        "determine the result of {x}, thanks",
        "can anyone say what {x} equals?",
        "answer: {x} =",
    ),
}
ORDER_FRAMES: dict[Split, tuple[str, ...]] = {
    "train": ("{x}", "{x}.", "please {x}", "now {x}", "i want you to {x}", "you should {x}, please"),
    "validation": ("let us {x}", "go on and {x}!"),
    "test": ("would you {x} for me?", "next, {x}", "your task is to {x}"),
}
OWN_ORDERS: dict[Split, dict[Operation, tuple[str, ...]]] = {
    "train": {},
    "validation": {
        A: ("start with {a} and add {b}",),
        S: ("start with {a} and subtract {b}",),
        M: ("start with {a} and multiply by {b}",),
        D: ("start with {a} and divide by {b}",),
        R: ("find what remainder {a} divided by {b} has",),
    },
    "test": {
        A: ("take {a}, then add {b} to it",),
        S: ("take {a}, then subtract {b}",),
        M: ("take {a}, then multiply it by {b}",),
        D: ("take {a}, then divide it by {b}",),
        R: ("give the remainder after you divide {a} by {b}",),
    },
}
"""Expressions that no other split has."""


@dataclass(frozen=True)
class Phrasing:
    """One way to ask for an operation: `name` tells it from others, `template` has places {a} and {b}."""

    name: str
    operation: Operation
    template: str


def phrasings(split: Split) -> list[Phrasing]:
    """All phrasings of a split, in a fixed order."""
    found = []
    for operation in Operation:
        orders = (*ORDERS[operation], *OWN_ORDERS[split].get(operation, ()))
        for frames, expressions in (
            (NOUN_FRAMES[split], NOUNS[operation]),
            (ORDER_FRAMES[split], orders),
        ):
            for frame in frames:
                for expression in expressions:
                    template = frame.replace("{x}", expression)
                    found.append(Phrasing(f"{operation.value}: {template}", operation, template))
    return found
