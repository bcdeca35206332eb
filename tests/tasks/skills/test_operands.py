"""Numbers in words and digits, their signs and their order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import BadQuery
from tasks.skills import parse_operands
from tasks.skills.numerals import from_words, to_words
from tasks.skills.program import LARGEST, SMALLEST


@given(st.one_of(st.integers(0, 2000), st.integers(0, 10**21 - 1)))
def test_every_number_is_read_back_from_its_words(value: int) -> None:
    assert from_words(to_words(value).replace("-", " ").split()) == value


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("one hundred and six", 106),
        ("nine million and five", 9_000_005),
        ("two thousand and forty two", 2042),
        ("zero", 0),
        ("five four", None),
        ("forty twenty", None),
        ("twenty eleven", None),
        ("hundred", None),
        ("eleven hundred", None),
        ("two thousand three million", None),
        ("two thousand three thousand", None),
        ("zero thousand", None),
        ("", None),
    ],
)
def test_only_what_is_said_is_a_numeral(words: str, value: int | None) -> None:
    assert from_words(words.split()) == value


@pytest.mark.parametrize(
    ("phrase", "first", "second", "masked"),
    [
        ("minus forty-two divided by 5", -42, 5, "# divided by #"),
        ("10 - -3", 10, -3, "# - #"),
        ("10-3", 10, 3, "#-#"),
        ("-10 minus minus three", -10, -3, "# minus #"),
        ("Negative Seven times +8?", -7, 8, "# times #?"),
        ("subtract 5 from twelve", 12, 5, "subtract # from #"),
        ("divide 3 into 12", 12, 3, "divide # into #"),
        ("the sum of one hundred and six", 100, 6, "the sum of # and #"),
        ("one hundred and six plus five", 106, 5, "# plus #"),
        ("the sum of five and six", 5, 6, "the sum of # and #"),
        ("12,345 % 1,000", 12345, 1000, "# % #"),
        ("5x3", 5, 3, "#x#"),
        ("\u22125 \u00d7 3.", -5, 3, "# \u00d7 #."),
        ("twenty-one plus thirty two", 21, 32, "# plus #"),
        ("ten-two", 10, 2, "#-#"),
        (f"{SMALLEST} + {LARGEST}", SMALLEST, LARGEST, "# + #"),
    ],
)
def test_a_phrase_gives_its_operands_in_the_order_of_the_operation(
    phrase: str, first: int, second: int, masked: str
) -> None:
    found = parse_operands(phrase)
    assert (found.first, found.second, found.masked) == (first, second, masked)


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("what is love?", "holds 0 whole numbers"),
        ("5", "holds 1 whole number "),
        ("1 2 3", "holds 3 whole numbers"),
        ("3.5 times 2", "3.5 is no whole number"),
        ("1,234.5 times 2", "1,234.5 is no whole number"),
        (f"{LARGEST + 1} plus 1", "outside signed 64-bit"),
        ("9" * 5000 + " plus 1", "characters"),
        ("9" * 4000 + " plus 1", "outside signed 64-bit"),
    ],
)
def test_a_phrase_without_two_whole_numbers_is_refused(phrase: str, reason: str) -> None:
    with pytest.raises(BadQuery, match=reason):
        parse_operands(phrase)


@given(st.one_of(st.text(max_size=60), st.text("0123456789-+., fivetnorymusadhg", max_size=60)))
def test_any_text_is_refused_or_gives_two_numbers_in_bounds(text: str) -> None:
    try:
        found = parse_operands(text)
    except BadQuery:
        return
    assert SMALLEST <= min(found.first, found.second) <= max(found.first, found.second) <= LARGEST
