"""The page of parameters is what the models say, and says something of every parameter."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from flows.parameter_page import PAGE, parameter_page
from flows.params import Params, load_params

ROOT = Path(__file__).parents[2]
ON_HOSTS = ("host", "shadow", "anneal", "facts", "composition", "larc", "programs", "study", "replay")


def parameters(values: BaseModel, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every parameter by its full name, with its default."""
    for name, value in values:
        if isinstance(value, BaseModel):
            yield from parameters(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def rows() -> dict[str, list[str]]:
    """The cells after the name of every row of the page."""
    found = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", parameter_page(), re.MULTILINE)
    return {name: re.split(r"(?<!\\)\| ?", rest) for name, rest in found}


def test_the_page_of_the_documentation_is_made_of_the_models_as_they_are() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == parameter_page(), (
        "parameters changed: write their page again with `python -m flows.parameter_page`"
    )


def test_every_parameter_stands_on_the_page_once_with_its_default() -> None:
    page, defaults = rows(), dict(parameters(Params()))
    assert set(page) == set(defaults)
    for name, value in defaults.items():
        shown = page[name][0].strip().strip("`")
        if isinstance(value, tuple) and shown.startswith(f"{len(value)} values, "):
            continue
        assert shown == ("unset" if value is None else json.dumps(value, default=str)), name


@pytest.mark.parametrize("section", ON_HOSTS)
def test_every_parameter_of_a_method_on_hosts_is_explained(section: str) -> None:
    mine = {name: cells for name, cells in rows().items() if name.startswith(f"{section}.")}
    assert mine
    assert [name for name, cells in mine.items() if not cells[2].strip()] == []


def test_a_default_can_be_set_as_the_page_shows_it() -> None:
    given = [f"{name}={cells[0].strip().strip('`')}" for name, cells in rows().items()]
    shown = [one for one in given if not one.endswith(("=unset", " the first"))]
    assert load_params(None, shown) == Params()


def test_bounds_and_choices_are_in_words() -> None:
    page = rows()
    assert page["shadow.step_size"][1].strip() == "number, above 0 to 1,000"
    assert page["facts.lessons"][1].strip() == "list: `varied`, `repeated`, `once`"
    assert page["larc.rank"][1].strip() == "integer, from 1 to 256"
    assert page["anneal.retention"][1].strip() == "list: {corpus, prefix, path, pattern}"
