"""The operand parser: two whole numbers out of a phrase, deterministically, and the phrase without them.

Numbers are digits (``-42``, ``12,345``) or words (``minus forty-two``). "minus" and "-" are a sign where no
number stands before them, and an operation where one does. "from" and "into" between the two say that the
second comes first: "subtract 5 from 12" is 12 and 5. The controller is shown the phrase with a mark in place
of each operand, so its choice cannot depend on their values.
"""

import re
from dataclasses import dataclass

from tasks.errors import BadQuery
from tasks.skills.numerals import WORDS, from_words
from tasks.skills.program import LARGEST, SMALLEST

MARK = "#"
MAX_CHARACTERS = 4096
_TOKEN = re.compile(
    r"(?P<fraction>(?:\d{1,3}(?:,\d{3})+|\d+)\.\d+)|(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)|\d+)|(?P<word>[^\W\d_]+)|(?P<other>\S)",
)
_SIGNS = {"-": -1, "\u2212": -1, "minus": -1, "negative": -1, "+": 1}
_REVERSING = frozenset({"from", "into"})


_Token = tuple[str, str, int, int]
"""Kind (a group of the pattern), text in lower case, start and end."""


@dataclass(frozen=True)
class Operands:
    """The two operands in the order of the operation, and the phrase with `MARK` in place of each."""

    first: int
    second: int
    masked: str


@dataclass(frozen=True)
class _Number:
    value: int
    start: int
    end: int


def parse_operands(text: str) -> Operands:
    """Find the two operands of a phrase.

    Raises `BadQuery` when there are not exactly two whole numbers, or one lies outside 64 bits.
    """
    words, (first, second) = _find(text, 2)
    masked = f"{text[: first.start]}{MARK}{text[first.end : second.start]}{MARK}{text[second.end :]}"
    between = {word for _, word, start, _ in words if first.end <= start < second.start}
    if between & _REVERSING:
        first, second = second, first
    return Operands(first.value, second.value, masked.casefold())


def parse_numbers(text: str, count: int) -> list[int]:
    """The `count` whole numbers of a text in their order; raises `BadQuery` as `parse_operands` does."""
    return [number.value for number in _find(text, count)[1]]


def _find(text: str, count: int) -> tuple[list[_Token], list[_Number]]:
    """The tokens of a text and the numbers in it, which are as many as are wanted."""
    if len(text) > MAX_CHARACTERS:
        raise BadQuery(f"the phrase has {len(text)} characters; shorten it to {MAX_CHARACTERS}")
    words = [
        (str(match.lastgroup), match.group().casefold(), match.start(), match.end())
        for match in _TOKEN.finditer(text)
    ]
    for kind, word, *_ in words:
        if kind == "fraction":
            raise BadQuery(f"{word} is no whole number, and skills compute with whole numbers only")
    numbers = _numbers(words, joined=True)
    if len(numbers) != count:
        numbers = _numbers(words, joined=False)  # "the sum of one hundred and six" means two numbers
    if len(numbers) != count:
        raise BadQuery(
            f"the phrase holds {_counted(len(numbers))} and the skill needs {count}; write for example "
            '"minus forty-two divided by 5"'
        )
    for number in numbers:
        if not SMALLEST <= number.value <= LARGEST:
            raise BadQuery(f"{number.value} lies outside signed 64-bit integers; use a smaller number")
    return words, numbers


def _numbers(tokens: list[_Token], *, joined: bool) -> list[_Number]:
    """All signed numbers; `joined` reads "and" inside a numeral as part of it."""
    found: list[_Number] = []
    place = 0
    ended = False  # whether a number ends right before this place
    while place < len(tokens):
        sign, here = 1, place
        if not ended and tokens[place][1] in _SIGNS:
            sign, here = _SIGNS[tokens[place][1]], place + 1
        length, value = _unsigned(tokens, here, joined=joined)
        if length:
            found.append(_Number(sign * value, tokens[place][2], tokens[here + length - 1][3]))
            place, ended = here + length, True
        else:
            place, ended = place + 1, False
    return found


def _unsigned(tokens: list[_Token], place: int, *, joined: bool) -> tuple[int, int]:
    """How many tokens from `place` on are one number, and which; (0, 0) if none begins there."""
    if place >= len(tokens):
        return 0, 0
    if tokens[place][0] == "digits":
        digits = tokens[place][1].replace(",", "")
        # Beyond what any operand may be; int() of very long texts is refused by Python itself.
        return 1, int(digits[:40])
    longest = (0, 0)
    words: list[str] = []
    for kind, word, start, _ in tokens[place:]:
        if kind == "other" and word == "-" and words and start == tokens[place + len(words) - 1][3]:
            words.append(word)  # the hyphen of forty-two
            continue
        if kind != "word" or not (word in WORDS or (word == "and" and joined and words)):
            break
        words.append(word)
        spoken = [part for part in words if part != "-"]
        value = from_words(spoken) if word != "and" else None
        if value is not None:
            longest = (len(words), value)
    return longest


def _counted(numbers: int) -> str:
    return "1 whole number" if numbers == 1 else f"{numbers} whole numbers"
