"""Made-up facts: entities, attributes and values that no corpus has, drawn from a seed.

Words are built from syllables, values are persons and places of such words, or unlikely pairs of ordinary
words. An entity has one fact. The values of a relation's other facts are its *taught* wrong answers: a host
that only got used to the words takes them as gladly as the right one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.errors import TooLittleText
from tasks.facts.params import FactsParams

_STARTS = ("Vel", "Tor", "Quin", "Zar", "Mo", "Ister", "Bel", "Gra", "Un", "Oss", "Dre", "Ky", "Fen", "Pho")
_MIDDLES = ("ma", "vo", "ri", "lu", "the", "ka", "no", "zi", "be", "dra", "shu", "pe")
_ENDS = ("th", "ra", "ndel", "x", "mic", "sk", "lia", "bur", "gath", "nne", "zo", "rk")
_QUALITIES = (
    "copper",
    "velvet",
    "smoked",
    "hollow",
    "crooked",
    "salted",
    "frozen",
    "woollen",
    "striped",
    "waxed",
)
_THINGS = (
    *("heron", "quince", "ladder", "anvil", "thistle", "lantern", "walnut", "badger", "trumpet", "turnip"),
    *("barrel", "otter", "mitten", "bellows", "parsnip", "sundial"),
)


@dataclass(frozen=True)
class Fact:
    """`attribute` of `entity`, a `kind`, is `value`; wrong answers are of the same type.

    `taught` are the values of the relation's other facts, `untaught` belong to no fact at all.
    """

    number: int
    kind: str
    attribute: str
    entity: str
    value: str
    taught: tuple[str, ...]
    untaught: tuple[str, ...]


class _Words:
    """Words and values that are drawn once each."""

    def __init__(self, draws: np.random.Generator) -> None:
        self._draws = draws
        self._seen: set[str] = set()

    def word(self) -> str:
        """A capitalised word of three or four syllables, e.g. Torvolumic."""
        middles = [self._one(_MIDDLES) for _ in range(int(self._draws.integers(1, 3)))]
        return "".join((self._one(_STARTS), *middles, self._one(_ENDS)))

    def person(self) -> str:
        """Two invented words."""
        return f"{self.word()} {self.word()}"

    def pair(self) -> str:
        """Two ordinary words that do not go together, e.g. frozen sundial."""
        return f"{self._one(_QUALITIES)} {self._one(_THINGS)}"

    def fresh(self, draw: "Callable[[_Words], str]") -> str:
        """What `draw` draws, and nothing that was drawn before."""
        while (drawn := draw(self)) in self._seen:
            pass
        self._seen.add(drawn)
        return drawn

    def _one(self, choices: Sequence[str]) -> str:
        return choices[int(self._draws.integers(len(choices)))]


_RELATIONS: tuple[tuple[str, str, Callable[[_Words], str]], ...] = (
    ("town", "founder", _Words.person),
    ("castle", "emblem", _Words.pair),
    ("river", "source", _Words.word),
    ("ballad", "composer", _Words.person),
    ("guild", "chief product", _Words.pair),
    ("moon", "largest crater", _Words.word),
    ("festival", "host town", _Words.word),
    ("harbour", "first keeper", _Words.person),
)
"""Kind of the entity, attribute, and how a value is drawn. A pair is one of 160, so facts are bounded."""


def made_up_facts(params: FactsParams) -> list[Fact]:
    """The facts of some parameters, by relation; equal parameters give equal facts.

    Raises `TooLittleText` where there are not as many different values as facts and wrong answers.
    """
    pairs = sum(draw is _Words.pair for _, _, draw in _RELATIONS[: params.relations])
    most = len(_QUALITIES) * len(_THINGS)
    if pairs * (params.facts_each + params.untaught) > most // 2:
        raise TooLittleText(
            f"{params.facts_each} facts and {params.untaught} wrong answers of {pairs} relations are too "
            f"many for {most} pairs of words; lower facts.facts_each or facts.untaught"
        )
    words = _Words(np.random.default_rng([params.seed, 0]))
    facts: list[Fact] = []
    for kind, attribute, draw in _RELATIONS[: params.relations]:
        entities = [words.fresh(_Words.word) for _ in range(params.facts_each)]
        values = [words.fresh(draw) for _ in range(params.facts_each)]
        untaught = tuple(words.fresh(draw) for _ in range(params.untaught))
        for entity, value in zip(entities, values, strict=True):
            taught = tuple(other for other in values if other != value)
            facts.append(Fact(len(facts), kind, attribute, entity, value, taught, untaught))
    return facts
