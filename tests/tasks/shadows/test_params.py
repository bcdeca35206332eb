"""Names and places of texts that cannot be meant are refused with the parameters."""

import pytest
from pydantic import ValidationError

from tasks.anneal import AnnealParams
from tasks.shadows import ShadowParams, TextSource


@pytest.mark.parametrize("pattern", ["/etc/*", "../*.txt", "", "a**/b"])
def test_a_pattern_that_leaves_its_folder_is_refused(pattern: str) -> None:
    with pytest.raises(ValidationError, match="pattern"):
        TextSource(path="notes", pattern=pattern)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "../x", "retention", "x.written", "n" * 65])
def test_a_name_that_no_domain_can_have_is_refused_before_any_is_learned(name: str) -> None:
    with pytest.raises(ValidationError, match=r"cannot name a domain|full strength"):
        AnnealParams(domains={"a": TextSource(corpus="docs"), name: TextSource(corpus="docs")})


def test_a_shadow_has_no_name_of_one_at_full_strength() -> None:
    with pytest.raises(ValidationError, match="full strength"):
        ShadowParams(name="topics.written")


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ({"corpus": "docs"}, "corpus docs"),
        ({"corpus": "docs", "prefix": "numpy."}, "corpus docs, numpy.*"),
        ({"path": "/home/me/secret/notes.txt"}, "notes.txt"),
        ({"path": "."}, "."),
        ({}, ""),
    ],
)
def test_a_text_is_called_without_the_folders_that_it_lies_in(source: dict[str, str], title: str) -> None:
    assert TextSource.model_validate(source).title == title
