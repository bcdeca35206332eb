"""The house rules that import-linter cannot say: how rooms meet, and that loading data never executes it."""

import ast
import importlib
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted(path for room in ("store", "tasks", "flows") for path in (ROOT / room).rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})
LAZY = [ROOT / "store" / "__init__.py", *sorted((ROOT / "tasks").glob("*/__init__.py"))]
"""Packages whose exports are imported on first use; see `store.exports`."""
EXECUTING_IMPORTS = {"pickle", "dill", "joblib", "shelve", "marshal", "cloudpickle"}
EXECUTING_CALLS = {"eval", "exec", "torch.load", "__import__", "yaml.load", "yaml.unsafe_load"}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
EVERY_FOLDER = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))


@cache
def _nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def _imports(path: Path) -> Iterator[str]:
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _modules(folder: Path) -> list[Path]:
    return [path for path in MODULES if path.parent == folder]


def _calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in _nodes(path):
        if isinstance(node, ast.Call):
            yield _dotted(node.func), node


@EVERY_FOLDER
def test_rooms_of_tasks_meet_only_through_what_their_package_exports(folder: Path) -> None:
    for path in _modules(folder):
        parts = path.relative_to(ROOT).parts
        room = parts[1] if parts[0] == "tasks" and len(parts) > 2 else None
        for module in _imports(path):
            names = module.split(".")
            if names[0] != "tasks" or len(names) < 3 or names[1] == room:
                continue
            doors = {"params", "step"} if parts[0] == "flows" else set()
            assert names[2] in doors, f"{'/'.join(parts)} reaches into {module}"


@pytest.mark.parametrize("path", LAZY, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_nothing_before_somebody_asks_for_it(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    now = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert now == {"typing", "store.exports"}
    assert not any(isinstance(node, ast.Import) for node in tree.body)
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    assert ast.unparse(last) == "export_lazily(__name__)"


@pytest.mark.parametrize("path", LAZY, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_room_exports_is_what_its_modules_hold(path: Path) -> None:
    room = importlib.import_module(".".join(path.parent.relative_to(ROOT).parts))
    guarded = [
        node
        for branch in ast.walk(ast.parse(path.read_text()))
        if isinstance(branch, ast.If)
        for node in branch.body
    ]
    listed = [alias.name for node in guarded if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(listed) == sorted(room.__all__)
    for node in guarded:
        assert isinstance(node, ast.ImportFrom)
        module = importlib.import_module(str(node.module))
        for alias in node.names:
            assert alias.asname is None
            assert getattr(room, alias.name) is getattr(module, alias.name)


def test_import_linter_sees_what_rooms_export() -> None:
    """Their imports stand under `if TYPE_CHECKING`, which it could be told to leave out."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    assert not rules.get("exclude_type_checking_imports", False)


@EVERY_FOLDER
def test_loading_data_never_executes_it(folder: Path) -> None:
    for path in _modules(folder):
        assert not EXECUTING_IMPORTS & {module.split(".")[0] for module in _imports(path)}, path
        for name, call in _calls(path):
            assert name not in EXECUTING_CALLS, path
            assert "trust_remote_code" not in {keyword.arg for keyword in call.keywords}, path
            allows = [keyword.value for keyword in call.keywords if keyword.arg == "allow_pickle"]
            assert all(isinstance(value, ast.Constant) and value.value is False for value in allows), path


@EVERY_FOLDER
def test_a_module_is_short_and_its_name_says_what_is_inside(folder: Path) -> None:
    for path in _modules(folder):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path
        assert path.stem not in VAGUE_NAMES
