"""Packages whose exports are imported when somebody first asks for them.

What a package exports stands in one place, its `__init__`: as imports under `if TYPE_CHECKING`, which
readers, mypy and import-linter see as they see any other, and in `__all__`. With `export_lazily(__name__)`
at its end an export costs nothing before its first use, so that whoever needs a constant of a room does not
wait until torch is loaded for its other modules.

A `__getattr__` in each package would do as much, but then mypy believes in every name that is asked for.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def export_lazily(package: str) -> None:
    """Let the package import what its `__all__` lists on first use; called by its `__init__`, at the end."""
    sys.modules[package].__class__ = _LazyPackage


class _LazyPackage(ModuleType):
    __all__: list[str]

    def __getattr__(self, name: str) -> Any:
        """Import an export that nobody has asked for yet; afterwards it is found without coming here."""
        if name not in self.__all__:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_homes(self)[name]), name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, but leave an export alone where Python would put a module of the same name."""
        if not (isinstance(value, ModuleType) and name in self.__all__):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__all__})


def _homes(package: ModuleType) -> dict[str, str]:
    """The module that each export comes from, as the imports under `if TYPE_CHECKING` say."""
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    guarded = (node for branch in tree.body if isinstance(branch, ast.If) for node in branch.body)
    return {
        alias.name: node.module
        for node in guarded
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
