"""Members of a file of figures, as far as they are what a page expects: anything else is left out."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from flows.formatting import number


def sections(
    values: Mapping[str, Any], order: Collection[str] = ()
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The nested objects of an object: known names in reading order, then the others by name."""
    known = list(order)
    names = sorted(values, key=lambda name: (known.index(name) if name in known else len(known), name))
    return ((name, values[name]) for name in names if isinstance(values[name], Mapping))


def numbers(values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers of an object, by name."""
    return ((name, value) for name in sorted(values) if (value := number(values[name])) is not None)


def objects(values: object) -> list[Mapping[str, Any]]:
    """The objects of a list."""
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def texts(values: object) -> list[str]:
    """The texts of a list."""
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def paired(xs: object, ys: object) -> list[tuple[float, float]]:
    """Pairs of two lists that are both numbers."""
    if not isinstance(xs, list) or not isinstance(ys, list):
        return []
    pairs = ((number(x), number(y)) for x, y in zip(xs, ys, strict=False))
    return [(x, y) for x, y in pairs if x is not None and y is not None]
