"""Reading a YAML file that a user wrote; what is wrong with it is one sentence."""

from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from store.errors import InputError
from store.paths import existing_file

_LARGEST = 2**1024
"""Whole numbers up to here can be printed and compared with any float."""


class _Loader(yaml.SafeLoader):
    """A loader that says where a value is that only looks like one: a month 13, `!!int abc`."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError) as cause:
            raise ConstructorError(None, None, "no such value", node.start_mark) from cause
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise ConstructorError(None, None, "too large a number", node.start_mark)
        return value


def read_yaml(path: Path, error: type[InputError], *, remedy: str) -> Any:
    """The tree in a YAML file, None where it is empty.

    Raises:
        InputError: as `error`: there is no such file (then `remedy` says what to do), no text, or no YAML.
    """
    try:
        return _load(existing_file(path, error, remedy=remedy).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as cause:
        raise error(f"{path} cannot be read as UTF-8 text; check the file") from cause
    except yaml.YAMLError as cause:
        mark = getattr(cause, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        raise error(f"{path} is not valid YAML{line}; correct it") from cause
    except RecursionError as cause:
        raise error(f"{path} nests its values too deeply; correct it") from cause


def _load(text: str) -> Any:
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
