"""Pages made from templates: every printed value escaped, and its invisible characters shown."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from flows import formatting

if TYPE_CHECKING:
    from jinja2 import Environment

FILTERS = ("count", "share", "nats", "interval", "size", "milliseconds", "seconds", "one_line")


def environment(package: str, filters: Mapping[str, Callable[..., Any]] | None = None) -> "Environment":
    """Templates of a package's `templates` folder, with the house's formatting as filters.

    Texts come from whoever wrote to the store. Only what is explicitly marked as safe is printed as markup.
    """
    return _environment(package) if filters is None else _made(package, filters)


@cache
def _environment(package: str) -> "Environment":
    """That without filters of its own, made once: to translate templates takes longer than to fill them."""
    return _made(package, {})


def _made(package: str, filters: Mapping[str, Callable[..., Any]]) -> "Environment":
    from jinja2 import ChainableUndefined, Environment, PackageLoader

    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=ChainableUndefined,
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update({name: getattr(formatting, name) for name in FILTERS} | dict(filters))
    return made


def _printed(value: object) -> object:
    """What a template prints for a value; markup that Jinja already escaped is a subclass of str."""
    return formatting.visible(value) if type(value) is str else value
