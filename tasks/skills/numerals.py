"""Whole numbers as English words, both ways.

``forty-two``, ``one hundred and six``, ``nine million eight thousand``. A numeral that no one would say
(``six hundred forty thousand two million``, ``five four``) is none.
"""

import re
from collections.abc import Sequence

_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_SMALL = f"zero one two three four five six seven eight nine {_TEENS}".split()
_TEN_WORDS = {
    10 * number: word
    for number, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2
    )
}
_TENS = {word: value for value, word in _TEN_WORDS.items()}
_SCALES = {
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "quadrillion": 10**15,
    "quintillion": 10**18,
}
_UNITS = {word: value for value, word in enumerate(_SMALL)}
WORDS = frozenset({*_UNITS, *_TENS, *_SCALES, "hundred"})
"""Every word of a numeral, besides "and"."""
_AND = re.compile(rf"\b(hundred|{'|'.join(_SCALES)}) and ")


def to_words(value: int) -> str:
    """A whole number from 0 in words, without "and"; `ValueError` from 10^21."""
    if not 0 <= value < 10**21:
        raise ValueError(f"{value} has no name here; numerals go from 0 to 10^21 - 1")
    if value < 1000:
        return _below_thousand(value)
    parts = []
    for word, scale in reversed(_SCALES.items()):
        if value >= scale:
            parts.append(f"{_below_thousand(value // scale)} {word}")
            value %= scale
    return " ".join(parts + ([_below_thousand(value)] if value else []))


def _below_thousand(value: int) -> str:
    words = []
    if value >= 100:
        words.append(f"{_SMALL[value // 100]} hundred")
        value %= 100
        if not value:
            return words[0]
    if value >= 20:
        ten, unit = value - value % 10, value % 10
        words.append(_TEN_WORDS[ten] + (f"-{_SMALL[unit]}" if unit else ""))
    else:
        words.append(_SMALL[value])
    return " ".join(words)


def from_words(words: Sequence[str]) -> int | None:
    """The number that these words are, "and" among them or not, or None if they are no numeral."""
    plain = _AND.sub(r"\1 ", " ".join(words))
    total, left = 0, 10**21
    group: list[str] = []
    for word in plain.split():
        if word in _SCALES:
            value = _group(group)
            if not value or _SCALES[word] >= left:
                return None
            total, left, group = total + value * _SCALES[word], _SCALES[word], []
        else:
            group.append(word)
    if not group:
        return total if left < 10**21 else None
    last = _group(group)
    if last is None or (total and (last == 0 or last >= left)):
        return None
    return total + last


def _group(words: Sequence[str]) -> int | None:
    """A number below a thousand: units, tens, and hundreds before them."""
    value = 0
    rest = list(words)
    if "hundred" in rest:
        if len(rest) < 2 or rest[1] != "hundred" or not 1 <= _UNITS.get(rest[0], 0) <= 9:
            return None
        value, rest = 100 * _UNITS[rest[0]], rest[2:]
        if not rest:
            return value
    if not rest:
        return None
    if rest[0] in _TENS:
        value += _TENS[rest[0]]
        if len(rest) == 1:
            return value
        unit = _UNITS.get(rest[1], 0)
        return value + unit if len(rest) == 2 and 1 <= unit <= 9 else None
    unit = _UNITS.get(rest[0], -1)
    return value + unit if len(rest) == 1 and unit >= (1 if value else 0) else None
