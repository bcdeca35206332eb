"""The page of all parameters, docs/parameters.md, made of the models: `python -m flows.parameter_page`.

A test compares the page with what is made here, so that neither goes stale.
"""

import inspect
import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from flows.params import Params

PAGE = Path("docs/parameters.md")
_HEAD = """\
# Parameters

What is computed, section by section: in `params.yaml`, or over it with `--set section.name=value` (JSON where
it can be, so that a list is `--set 'shadow.layers=[4,9]'`). Parameters enter the fingerprints of what is
published; where and on what a run happens is set by `CELLAR_*` and never does. A name that is not known, and
a value outside its bounds, is refused before anything starts. Defaults are those without a `params.yaml`.
This page is made of the models in `tasks/*/params.py`: `python -m flows.parameter_page` writes it again.
"""
_LONG = 160
"""Characters of a default from which on a list only says how long it is."""
_PLAIN = {int: "integer", float: "number", str: "text", bool: "true or false", Path: "path"}
_BOUNDS = {"ge": "from {}", "gt": "above {}", "le": "to {}", "lt": "below {}"}


def parameter_page() -> str:
    """The page as Markdown: one table a section, a row for every parameter by its full name."""
    parts = [_HEAD]
    for name, field in Params.model_fields.items():
        kind = _model(field)
        assert kind is not None, "sections are models"
        head = ("| name | default | values | meaning |", "|---|---|---|---|")
        table = "\n".join((*head, *_rows(kind(), f"{name}.")))
        parts.append(f"## `{name}`\n{_purpose(kind)}\n\n{table}\n")
    return "\n".join(parts)


def _rows(values: BaseModel, prefix: str) -> Iterator[str]:
    """A row for each parameter, and one before those of a section inside; `values` are defaults."""
    for name, field in type(values).model_fields.items():
        value = getattr(values, name)
        if isinstance(value, BaseModel):
            about = field.description or inspect.getdoc(type(value)) or ""
            yield f"| **`{prefix}{name}`** | | | *{_cell(about)}* |"
            yield from _rows(value, f"{prefix}{name}.")
            continue
        cells = (f"`{prefix}{name}`", _default(value), _values(field), field.description or "")
        yield "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _purpose(kind: type[BaseModel]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")


def _default(value: object) -> str:
    if value is None:
        return "unset"
    shown = list(value) if isinstance(value, tuple) else value
    text = json.dumps(shown, default=str)
    if len(text) > _LONG and isinstance(shown, list):
        return f"{len(shown)} values, `{json.dumps(shown[0])}` the first"
    return f"`{text}`"


def _values(field: FieldInfo) -> str:
    """What a parameter may be: its kind, its choices or its bounds."""
    limits = [
        words.format(_number(limit))
        for one in field.metadata
        for name, words in _BOUNDS.items()
        if (limit := getattr(one, name, None)) is not None
    ]
    kind = _kind(field.annotation)
    return f"{kind}, {' '.join(limits)}" if limits else kind


def _kind(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in inner)
    if origin in (types.UnionType, Union):
        return " or ".join(_kind(one) for one in inner if one is not types.NoneType)
    if origin in (tuple, list):
        listed = dict.fromkeys(_kind(one) for one in inner if one is not Ellipsis)
        return f"list: {' and '.join(listed)}"
    if origin is dict:
        return f"{_kind(inner[1])}, by name"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return f"{{{', '.join(kind.model_fields)}}}"
    return _PLAIN.get(kind, getattr(kind, "__name__", str(kind)))


def _number(value: float) -> str:
    whole = isinstance(value, int) or (value.is_integer() and abs(value) < 1e15)
    return f"{value:,.0f}" if whole and abs(value) < 10**15 else f"{value:.3g}"


def _model(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(parameter_page(), encoding="utf-8")
