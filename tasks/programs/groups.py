"""Parameter groups: one public configuration with its four recipes, and the seeded splits of groups."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

import numpy as np

from tasks.errors import TooFewGroups
from tasks.programs.candidates import Candidate, Family, Step, Value, execute
from tasks.programs.params import ProgramsParams, Split
from tasks.programs.streams import stream

RECIPES = 4
"""Recipes of each family, in the fixed order of prompts."""
_PROBES = 256
"""Lists on which programs have to differ somewhere to count as different; numbers are tried one and all."""


@dataclass(frozen=True)
class Group:
    """A pair of active parameters: (scale, offset), or (minimum, limit) with the suffix that `append` adds.

    `clip` is the bound of the arithmetic family, 0 in the other.
    """

    family: Family
    first: int
    second: int
    clip: int = 0
    suffix: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Its name among all groups, e.g. arithmetic/2/3."""
        return f"{self.family}/{self.first}/{self.second}"

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The four complete programs, in the order of the recipes."""
        if self.family is Family.ARITHMETIC:
            mul, add = Step("mul", (self.first,)), Step("add", (self.second,))
            clip = Step("clip", (-self.clip, self.clip))
            recipes = [(mul, add), (add, mul), (clip, mul, add), (mul, clip, add)]
        else:
            kept, take = Step("filter_min", (self.first,)), Step("take", (self.second,))
            sort, append = Step("sort"), Step("append", self.suffix)
            recipes = [(kept, take), (take, kept), (kept, sort, take, append), (append, kept, sort, take)]
        return tuple(Candidate(recipe) for recipe in recipes)


def groups(params: ProgramsParams, split: Split) -> tuple[Group, ...]:
    """The groups of a split: those of the arithmetic family, then as many of the other.

    Raises `TooFewGroups` when the ranges hold too few.
    """
    return tuple(group for family in Family for group in _splits(params, family)[split])


def reserved_groups(params: ProgramsParams) -> tuple[Group, ...]:
    """The groups that are kept for a final test: no training and no evaluation of development opens them."""
    return tuple(group for family in Family for group in _splits(params, family)["reserved"])


@cache
def _splits(params: ProgramsParams, family: Family) -> dict[str, tuple[Group, ...]]:
    found = [group for group in _space(params, family) if not params.distinct or _differ(params, group)]
    if len(found) < params.groups:
        raise TooFewGroups(
            f"the {family} family has {len(found)} groups and the splits ask for {params.groups}; widen its "
            "ranges or ask for fewer"
        )
    order = stream(params.seed, "split", family).permutation(len(found))
    shuffled = [found[place] for place in order]
    sizes = (params.train, params.development, params.reserved, params.preflight)
    names = (Split.TRAIN, Split.DEVELOPMENT, "reserved", Split.PREFLIGHT)
    ends = np.cumsum(sizes)
    return {
        name: tuple(shuffled[end - size : end]) for name, size, end in zip(names, sizes, ends, strict=True)
    }


def _space(params: ProgramsParams, family: Family) -> list[Group]:
    """All groups of a family, in the order of their parameters."""
    if family is Family.ARITHMETIC:
        chosen = params.arithmetic
        scales = [scale for scale in range(-chosen.scale, chosen.scale + 1) if scale]
        offsets = range(-chosen.offset, chosen.offset + 1)
        return [Group(family, scale, offset, chosen.clip) for scale, offset in product(scales, offsets)]
    lists = params.lists
    minima, limits = range(-lists.minimum, lists.minimum + 1), range(1, lists.entries + 1)
    return [
        Group(family, minimum, limit, suffix=_suffix(params, minimum, limit))
        for minimum, limit in product(minima, limits)
    ]


def _suffix(params: ProgramsParams, minimum: int, limit: int) -> tuple[int, ...]:
    rng = stream(params.seed, "suffix", minimum, limit)
    bound = params.lists.magnitude
    return tuple(rng.integers(-bound, bound + 1, size=params.lists.suffix).tolist())


def _differ(params: ProgramsParams, group: Group) -> bool:
    """Whether no two of the four programs compute the same on all numbers, or on the probed lists."""
    outputs = [[execute(one, value) for value in _probes(params, group.family)] for one in group.candidates]
    return all(one != other for one, other in combinations(outputs, 2))


@cache
def _probes(params: ProgramsParams, family: Family) -> tuple[Value, ...]:
    if family is Family.ARITHMETIC:
        bound = params.arithmetic.magnitude
        return tuple(range(-bound, bound + 1))
    bound, rng = params.lists.magnitude, stream(params.seed, "probes")
    drawn = rng.integers(-bound, bound + 1, size=(_PROBES, params.lists.entries))
    return tuple(tuple(row) for row in drawn.tolist())
