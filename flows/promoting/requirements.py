"""Requirements on the figures of an evaluation: `nll.retrieved<2.0`, or `nll.retrieved<=prod*1.02`.

    requirement  = path operator bound
    path         = name {"." name}                 into the summary; a number counts into a list
    operator     = "<" | "<=" | ">" | ">=" | "==" | "!="
    bound        = number | head [("+" | "-" | "*") number]

A head as bound means the same figure of the snapshot that the head points to.
"""

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flows.errors import UsageError
from flows.formatting import number

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_ADJUST: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_FORM = re.compile(r"\s*(?P<path>[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)\s*(?P<sign><=|>=|==|!=|<|>)(?P<bound>.+)")
_NEAR = 3
_DIGITS = 10
"""No list of figures is so long that a place in it has as many."""
_NO_NUMBER = math.nan


@dataclass(frozen=True, slots=True)
class Requirement:
    """A figure, an operator, and what it is compared with; `head` where that is a figure of another."""

    text: str
    path: str
    sign: str
    number: float
    head: str = ""
    change: str = ""
    """How `number` changes the head's figure."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a requirement: the figure, the bound as a number, and whether it holds."""

    requirement: Requirement
    value: float
    bound: float | None
    """None where the head points nowhere yet."""
    holds: bool

    def to_dict(self) -> dict[str, Any]:
        """JSON values; what is no finite number is null."""
        return {
            "requirement": self.requirement.text,
            "value": number(self.value),
            "bound": number(self.bound),
            "holds": self.holds,
        }


def parse_requirement(text: str, head: str) -> Requirement:
    """Read a requirement whose bound may be a figure of `head`; raises `UsageError` for what is none."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise UsageError(
            f"requirement {text!r} is not of the form FIGURE OPERATOR BOUND, e.g. 'nll.retrieved<2.0' or "
            f"'nll.retrieved<={head}+0.05'"
        )
    path, sign, bound = form["path"], form["sign"], form["bound"].strip()
    shown = f"{path}{sign}{bound}"
    if re.fullmatch(_NUMBER, bound) and math.isfinite(float(bound)):
        return Requirement(shown, path, sign, float(bound))
    relative = re.fullmatch(rf"{re.escape(head)}(?:\s*([-+*])\s*({_NUMBER}))?", bound)
    if relative is None or not math.isfinite(number := float(relative[2] or 0)):
        raise UsageError(
            f"requirement {text!r} compares with {bound!r}; give a number, or {head} for the figure of the "
            f"snapshot that it points to, with + - * and a number behind it where that is to be changed"
        )
    return Requirement(shown, path, sign, number, head, relative[1] or "+")


def judge(requirement: Requirement, figures: Mapping[str, Any], of_head: Mapping[str, Any] | None) -> Verdict:
    """Compare a figure with its bound; what is no number holds for nothing.

    `of_head` are the figures of the head's snapshot, None where it points nowhere. Raises `UsageError` for a
    path that leads to no number.
    """
    value = figure(figures, requirement.path)
    bound: float | None = requirement.number
    if requirement.head:
        bound = None
        if of_head is not None:
            bound = _ADJUST[requirement.change](figure(of_head, requirement.path), requirement.number)
    holds = bound is not None and _both_numbers(value, bound) and _COMPARE[requirement.sign](value, bound)
    return Verdict(requirement, value, bound, holds)


def figure(figures: Mapping[str, Any], path: str) -> float:
    """The number that a dotted path leads to; raises `UsageError` with near names where it leads to none.

    What is infinite, no number or beyond what a float can hold comes as NaN, which meets nothing.
    """
    found: Any = figures
    for part in path.split("."):
        found = _step(found, part)
    if not isinstance(found, bool) and isinstance(found, int | float):
        return _NO_NUMBER if (known := number(found)) is None else known
    there = dict(numbers(figures))
    below = [name for name in there if name.startswith(f"{path}.")]
    near = below[:_NEAR] or difflib.get_close_matches(path, there, n=_NEAR, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else "`cellar eval show --json` lists what there is"
    what = "is a section of figures" if below else "is no figure"
    raise UsageError(f"{path} {what} of this evaluation; {hint}")


def numbers(figures: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Every finite number in figures with its dotted path."""
    if isinstance(figures, Mapping):
        for name, value in figures.items():
            yield from numbers(value, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(figures, list):
        for place, value in enumerate(figures):
            yield from numbers(value, f"{prefix}.{place}")
    elif (known := number(figures)) is not None:
        yield prefix, known


def _step(found: Any, part: str) -> Any:
    if isinstance(found, Mapping):
        return found.get(part)
    if isinstance(found, list) and part.isdecimal() and len(part) < _DIGITS and int(part) < len(found):
        return found[int(part)]
    return None


def _both_numbers(value: float, bound: float) -> bool:
    return math.isfinite(value) and math.isfinite(bound)
