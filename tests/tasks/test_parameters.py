"""What holds for every parameter of every room, whoever adds one."""

import importlib
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from tasks.parameters import Parameters

TASKS = Path(__file__).parents[2] / "tasks"


def classes() -> list[type[BaseModel]]:
    found = []
    for path in sorted(TASKS.glob("*/params.py")):
        module = importlib.import_module(f"tasks.{path.parent.name}.params")
        made_here = (
            one for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__
        )
        found += [one for one in made_here if isinstance(one, type) and issubclass(one, BaseModel)]
    return found


def holds(kind: Any, wanted: type) -> bool:
    return kind is wanted or any(holds(part, wanted) for part in typing.get_args(kind))


def fields_of(wanted: type) -> Iterator[tuple[type[BaseModel], str]]:
    for model in classes():
        for name, field in model.model_fields.items():
            if holds(field.annotation, wanted):
                yield model, name


@pytest.mark.parametrize("model", classes(), ids=lambda model: f"{model.__module__}.{model.__name__}")
def test_every_class_of_parameters_is_of_the_common_kind(model: type[BaseModel]) -> None:
    assert issubclass(model, Parameters)
    assert model.model_config["frozen"]
    assert model.model_config["extra"] == "forbid"
    assert model.model_config["allow_inf_nan"] is False
    with pytest.raises(ValidationError, match="no_such_parameter"):
        model.model_validate({"no_such_parameter": 1})


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), "Infinity", "nan"])
def test_infinity_and_what_is_no_number_are_refused_by_every_parameter(value: float | str) -> None:
    tried = list(fields_of(float))
    assert len(tried) > 60
    assert {"step_norm", "clip", "bias_l2", "betas"} <= {name for _, name in tried}
    for model, name in tried:
        kind = model.model_fields[name].annotation
        plain = kind is float or typing.get_origin(kind) in (types.UnionType, typing.Union)
        given = value if plain else [value] * len([one for one in typing.get_args(kind) if one is float])
        with pytest.raises(ValidationError) as refused:
            model.model_validate({name: given})
        (first, *_) = refused.value.errors()
        assert first["loc"][0] == name, model
        assert first["type"] == "finite_number", model


def test_an_empty_path_is_refused_by_every_parameter_and_does_not_mean_the_working_folder() -> None:
    tried = list(fields_of(Path))
    assert {(model.__name__, name) for model, name in tried} >= {
        ("TextSource", "path"),
        ("CorpusParams", "path"),
        ("TokenizerParams", "file"),
    }
    for model, name in tried:
        with pytest.raises(ValidationError, match=r"it is empty; give a path, or \. for the working folder"):
            model.model_validate({name: ""})
