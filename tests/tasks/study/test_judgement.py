"""The judgement on samples whose figures are known beforehand."""

from collections.abc import Callable, Sequence

import pytest

from tasks.study import Cell, JudgeParams, SelectionSample
from tasks.study.judgement import judge

PARAMS = JudgeParams(resamples=500)
Error = Callable[[str, int, str, int], float]
"""Expected error by arm, seed, cell and number of the group."""


def _sample(
    arm: str, seed: int, family: str, group: int, recipe: int, cell: str, error: float
) -> SelectionSample:
    return SelectionSample(
        arm, seed, family, f"{family}/{group}", recipe, cell, error, 0, error, error == 0, 0.5, 0.5,
        0.25, 0.25, 0.25, 0.25, 0.0, 1.0, 1.0, 1.0,
    )  # fmt: skip


def _samples(
    error: Error, arms: Sequence[str] = ("static", "adapted"), seeds: Sequence[int] = (1, 2, 3)
) -> list[SelectionSample]:
    return [
        _sample(arm, seed, family, group, recipe, cell.value, error(arm, seed, cell.value, group))
        for arm in arms
        for seed in seeds
        for family in ("arithmetic", "list")
        for group in range(8)
        for recipe in range(4)
        for cell in Cell
    ]


def _learns(gain: dict[str, float], keep: float = 0.2, varies: float = 0.0) -> Error:
    """Reset errors of keep + gain, sham ones as if nothing was kept."""

    def error(arm: str, seed: int, cell: str, group: int) -> float:
        base = keep + varies * (group % 2)
        return base if cell == Cell.REAL_KEEP else base + gain[arm] + 0.01 * seed

    return error


def test_gains_are_of_means_over_seeds_and_an_effect_of_every_group_has_no_width() -> None:
    found = judge(
        _samples(_learns({"static": 0.3, "adapted": 0.4})), ("static", "adapted"), (1, 2, 3), _COSTS, PARAMS
    )

    gain = found["contrasts"]["static.G"]
    assert gain["value"] == pytest.approx(0.32)
    assert (gain["low"], gain["high"]) == pytest.approx((0.32, 0.32))
    assert gain["material"]
    assert found["contrasts"]["static.D"]["value"] == pytest.approx(0.32)
    assert not found["contrasts"]["objective"]["material"]
    assert found["gains_by_seed"]["adapted"]["3"]["G"] == pytest.approx(0.43)
    assert found["selection"]["selected"] == "adapted"


_COSTS = {"static": 5.0, "adapted": 6.0}


def test_intervals_are_of_groups_and_not_of_recipes_or_seeds() -> None:
    found = judge(
        _samples(_learns({"static": 0.3}, varies=0.2), ["static"]), ("static",), (1, 2, 3), _COSTS, PARAMS
    )
    figure = found["conditions"]["static"]["real/keep"]["error"]

    assert figure["value"] == pytest.approx(0.3)
    # The mean of 16 groups at .2 and .4 has a deviation of .025; 99 % lie within 2.6 of them.
    assert 0.04 < figure["high"] - figure["value"] < 0.09
    assert found["conditions"]["static"]["real/keep"]["seed_sd"] == pytest.approx(0)
    assert found["conditions"]["static"]["real/reset"]["seed_sd"] == pytest.approx(0.01)


def test_families_count_equally_whatever_their_number_of_groups() -> None:
    samples = _samples(_learns({"static": 0.3}), ["static"])
    fewer = [s for s in samples if s.family == "list" or s.group == "arithmetic/0"]
    changed = [
        _sample(
            s.arm, s.seed, s.family, int(s.group[-1]), s.recipe, s.cell, s.error + (s.family == "list") * 0.4
        )
        for s in fewer
    ]
    found = judge(changed, ("static",), (1, 2, 3), _COSTS, PARAMS)

    assert found["conditions"]["static"]["real/keep"]["error"]["value"] == pytest.approx(0.4)
    assert found["conditions"]["static"]["real/keep"]["families"] == pytest.approx(
        {"arithmetic": 0.2, "list": 0.6}
    )


@pytest.mark.parametrize(
    ("gain", "costs", "selected", "eligible"),
    [
        ({"static": 0.3, "adapted": 0.2}, _COSTS, "static", ["static", "adapted"]),
        ({"static": 0.3, "adapted": 0.3}, _COSTS, "static", ["static", "adapted"]),
        ({"static": 0.3, "adapted": 0.3}, {"static": 7.0, "adapted": 6.0}, "adapted", ["static", "adapted"]),
        ({"static": 0.3, "adapted": 0.3}, {"static": 6.0, "adapted": 6.0}, "static", ["static", "adapted"]),
        ({"static": 0.0, "adapted": 0.2}, _COSTS, "adapted", ["adapted"]),
        ({"static": -0.1, "adapted": 0.0}, _COSTS, None, []),
    ],
)
def test_the_eligible_objective_with_the_best_worst_seed_is_chosen(
    gain: dict[str, float], costs: dict[str, float], selected: str | None, eligible: list[str]
) -> None:
    found = judge(_samples(_learns(gain)), ("static", "adapted"), (1, 2, 3), costs, PARAMS)["selection"]  # type: ignore[arg-type]

    assert (found["selected"], found["eligible"]) == (selected, eligible)


def test_one_seed_that_loses_makes_an_objective_ineligible() -> None:
    learns = _learns({"static": 0.3})

    def error(arm: str, seed: int, cell: str, group: int) -> float:
        return 0.9 if seed == 2 and cell == Cell.REAL_KEEP else learns(arm, seed, cell, group)

    found = judge(_samples(error, ["static"]), ("static",), (1, 2, 3), _COSTS, PARAMS)

    assert found["contrasts"]["static.G"]["value"] > 0.03
    assert found["selection"]["eligible"] == []
    assert found["selection"]["worst_seed"]["static"] < 0
