"""What may be replaced is said as a memory, with or without a whole version."""

import pytest
from pydantic import ValidationError

from tasks.replacement import ReplacementParams
from tasks.replacement.params import split_version

VERSION = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("element", "name", "version"),
    [
        ("memory/a", "memory/a", None),
        (f"memory/a@{VERSION}", "memory/a", VERSION),
        ("memory/icons@2x.md", "memory/icons@2x.md", None),
        (f"memory/icons@2x.md@{VERSION}", "memory/icons@2x.md", VERSION),
    ],
)
def test_a_memory_and_its_version_are_told_apart(element: str, name: str, version: str | None) -> None:
    assert ReplacementParams(element=element).element == element
    assert split_version(element) == (name, version)


@pytest.mark.parametrize(
    ("element", "sentence"),
    [
        (f"codec/docs@{VERSION}", "'codec/docs' is no memory"),
        ("codec/docs", "'codec/docs' is no memory"),
        ("@@", "'@@' is no memory"),
        ("", "'' is no memory"),
        ("memory/", "is empty"),
        ("memory/a/../b", "has an empty"),
        ("memory/a@", "does not end in a whole version"),
        ("memory/a@0123456789ab", "does not end in a whole version"),
    ],
)
def test_what_is_no_memory_is_refused_with_the_way_to_write_one(element: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        ReplacementParams(element=element)
    assert sentence in str(refused.value)
    assert "write memory/NAME, or memory/NAME@VERSION with all 64 digits" in str(refused.value)
