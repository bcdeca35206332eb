"""Requirements are read strictly, and hold only for numbers that are known."""

import math
from typing import Any

import pytest

from flows.errors import UsageError
from flows.promoting.requirements import figure, judge, numbers, parse_requirement

FIGURES: dict[str, Any] = {
    "tasks": 20,
    "protocol": "coordinate-assisted",
    "standalone": None,
    "nll": {"none": 4.5, "retrieved": 1.6},
    "conditions": {"retrieved": {"nll": {"value": 1.6, "low": 1.2, "high": 2.1}}},
    "gain": {"ci95": [0.9, 1.1], "nonsense": math.nan},
    "reused": True,
}
OF_HEAD: dict[str, Any] = {"nll": {"none": 4.5, "retrieved": 1.5}, "gain": {"nonsense": math.nan}}


def holds(text: str, of_head: dict[str, Any] | None = OF_HEAD) -> bool:
    return judge(parse_requirement(text, "prod"), FIGURES, of_head).holds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nll.retrieved<2.0", True),
        ("nll.retrieved<1.6", False),
        ("nll.retrieved<=1.6", True),
        (" nll.retrieved >= 1.6 ", True),
        ("nll.retrieved>1.6", False),
        ("nll.retrieved==1.6", True),
        ("nll.retrieved!=1.6", False),
        ("tasks>=2e1", True),
        ("conditions.retrieved.nll.high<2.2", True),
        ("gain.ci95.0>-.5", True),
        ("nll.retrieved<prod", False),
        ("nll.retrieved<=prod+0.11", True),
        ("nll.retrieved<=prod * 1.2", True),
        ("nll.none<prod-0.1", False),
    ],
)
def test_a_requirement_compares_a_figure_with_a_number_or_with_the_heads(text: str, expected: bool) -> None:
    assert holds(text) is expected


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
def test_what_is_no_number_meets_no_requirement(sign: str) -> None:
    assert not holds(f"gain.nonsense{sign}0")
    assert not holds(f"nll.retrieved{sign}prod", None)
    assert not judge(
        parse_requirement(f"nll.none{sign}prod", "prod"), FIGURES, {"nll": {"none": math.nan}}
    ).holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nll.retrieved",
        "nll.retrieved<",
        "nll.retrieved=2",
        "nll.retrieved=<2",
        "<2",
        "nll..retrieved<2",
        ".nll<2",
        "nll.retrieved<nan",
        "nll.retrieved<inf",
        "nll.retrieved<1e999",
        "nll.retrieved<1_0",
        "nll.retrieved<0x10",
        "nll.retrieved<stable",
        "nll.retrieved<prod/2",
        "nll.retrieved<prod+",
        "nll.retrieved<prod+1+1",
        "nll.retrieved<2 or 1",
        "__import__('os').getcwd()<2",
        "nll.retrieved<2<3",
    ],
)
def test_what_is_no_requirement_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"requirement .* (is not of the form|compares with)"):
        parse_requirement(text, "prod")


def test_a_head_is_meant_by_its_whole_name_whatever_it_is_called() -> None:
    requirement = parse_requirement("nll.none<=prod-1.x+0.5", "prod-1.x")

    assert (requirement.head, requirement.change, requirement.number) == ("prod-1.x", "+", 0.5)
    with pytest.raises(UsageError):
        parse_requirement("nll.none<=prod+0.5", "prod-1.x")


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("nll.retreived", "did you mean nll.retrieved"),
        ("conditions.retrieved.nll", r"is a section of figures.*conditions.retrieved.nll.value"),
        ("protocol", "is no figure"),
        ("standalone", "is no figure"),
        ("reused", "is no figure"),
        ("gain.ci95.2", "did you mean gain.ci95"),
        ("nll.none.value", "did you mean"),
    ],
)
def test_a_path_that_leads_to_no_number_is_refused_with_near_names(path: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        figure(FIGURES, path)


def test_every_number_can_be_required_by_its_path() -> None:
    for path, value in numbers(FIGURES):
        assert figure(FIGURES, path) == value or math.isnan(value)
    assert "reused" not in dict(numbers(FIGURES))


ODD = [10**400, -(10**400), math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
def test_what_no_finite_number_can_say_meets_no_requirement(odd: float, sign: str) -> None:
    mine = {"nll": odd, "tasks": 3}
    verdicts = [
        judge(parse_requirement(f"nll{sign}2", "prod"), mine, None),
        judge(parse_requirement(f"tasks{sign}prod", "prod"), mine, {"tasks": odd}),
        judge(parse_requirement(f"tasks{sign}prod*1e308", "prod"), mine, {"tasks": -1e9}),
    ]
    assert [verdict.holds for verdict in verdicts] == [False] * 3
    assert verdicts[0].to_dict()["value"] is None
    assert [name for name, _ in numbers(mine)] == ["tasks"]


def test_a_place_in_a_list_may_have_any_number_of_digits() -> None:
    with pytest.raises(UsageError, match="is no figure"):
        figure({"ci": [1]}, f"ci.{'1' * 5000}")
