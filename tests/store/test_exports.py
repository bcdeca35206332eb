"""Packages that import their exports on first use, on a small package of its own in every test."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

INIT = """
from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from pantry.jars import Jar
    from pantry.stir import (
        SPOONS,
        stir,
    )

__all__ = ["SPOONS", "Jar", "stir"]

export_lazily(__name__)
"""


@pytest.fixture
def pantry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Return a fresh package `pantry` with two modules, one of them named like an export."""
    folder = tmp_path / "pantry"
    folder.mkdir()
    (folder / "__init__.py").write_text(INIT)
    (folder / "jars.py").write_text("class Jar:\n    pass\n")
    (folder / "stir.py").write_text("SPOONS = 3\n\n\ndef stir():\n    return SPOONS\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("pantry")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pantry"]:
        del sys.modules[name]


def test_an_export_is_imported_when_it_is_asked_for_and_not_before(pantry: ModuleType) -> None:
    assert "pantry.jars" not in sys.modules
    jar = pantry.Jar
    assert jar is sys.modules["pantry.jars"].Jar
    assert "pantry.stir" not in sys.modules


def test_an_export_keeps_its_name_beside_a_module_of_the_same_name(pantry: ModuleType) -> None:
    module = importlib.import_module("pantry.stir")
    assert isinstance(module, ModuleType)
    assert pantry.stir() == 3
    del sys.modules["pantry.stir"]
    importlib.import_module("pantry.stir")
    assert pantry.stir() == 3


def test_a_name_that_is_no_export_is_not_there(pantry: ModuleType) -> None:
    with pytest.raises(AttributeError, match="module 'pantry' has no attribute 'Spoon'"):
        _ = pantry.Spoon
    with pytest.raises(ImportError, match="Spoon"):
        exec("from pantry import Spoon")


def test_a_module_that_is_no_export_is_an_attribute_once_imported(pantry: ModuleType) -> None:
    module = importlib.import_module("pantry.jars")
    assert pantry.jars is module


def test_a_test_may_put_something_in_the_place_of_an_export(
    pantry: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("pantry.stir", lambda: 7)
        assert pantry.stir() == 7
    assert pantry.stir() == 3


def test_everything_exported_is_listed_and_comes_with_a_star(pantry: ModuleType) -> None:
    assert {"SPOONS", "Jar", "stir"} <= set(dir(pantry))
    space: dict[str, object] = {}
    exec("from pantry import *", space)
    assert space["SPOONS"] == 3
