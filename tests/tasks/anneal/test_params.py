"""What parameters of a consolidation refuse: each would compute something twice, or nothing."""

from typing import Any

import pytest
from pydantic import ValidationError

from tasks.anneal import AnnealParams
from tasks.facts import FactsParams


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sealed": {"baselines": ["single", "line", "single"]}}, "baselines name one twice"),
        ({"population": 3}, "greater than or equal to 4"),
        ({"scored": 128, "passage_tokens": 128}, "the first has nothing before it"),
    ],
)
def test_what_makes_no_search_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        AnnealParams.model_validate(given)


def test_a_lesson_is_taught_once() -> None:
    with pytest.raises(ValidationError, match="lessons name one twice"):
        FactsParams.model_validate({"lessons": ["once", "varied", "once"]})
