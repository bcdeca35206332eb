"""The default corpus: English documentation that every installation ships, read without importing it."""

import ast
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tasks.corpus.docstrings import Docstring, docstrings_of, parse
from tasks.corpus.document import Document, Item, Skipped
from tasks.corpus.files import SourceFile
from tasks.corpus.public_names import ModuleNames, PublicNames, is_private, names_of

TOPICS = "python.topics"
STANDARD_LIBRARY = "stdlib"

_TOPICS_FILE = "pydoc_data/topics.py"
_NO_DOCUMENTATION = {
    "test", "tests", "testing", "idlelib", "lib2to3", "turtledemo", "pydoc_data",
    "site-packages", "_vendor", "vendored", "__pycache__",
}  # fmt: skip


def list_sources(packages: Sequence[str]) -> tuple[dict[str, list[SourceFile]], list[Skipped]]:
    """The Python files of each named package, in the given order, and the packages that are not installed."""
    found: dict[str, list[SourceFile]] = {}
    missing: list[Skipped] = []
    for package in dict.fromkeys(packages):
        files = _files_of(package)
        if files:
            found[package] = files
        else:
            missing.append(Skipped(package, "not installed"))
    return found, missing


def _files_of(package: str) -> list[SourceFile]:
    library = Path(sysconfig.get_path("stdlib"))
    if package == TOPICS:
        path = library / _TOPICS_FILE
        return [SourceFile(_TOPICS_FILE, path)] if path.is_file() else []
    if package == STANDARD_LIBRARY:
        paths = sorted(library.glob("*.py")) + sorted(
            path for name in sorted(sys.stdlib_module_names) for path in (library / name).glob("**/*.py")
        )
        return [SourceFile(p.relative_to(library).as_posix(), p) for p in paths if _wanted(p, library)]
    root, _, rest = package.partition(".")
    # Only the top-level name may be asked for: looking up a dotted one would import its parent.
    spec = importlib.util.find_spec(root)
    if spec is None or not spec.submodule_search_locations:
        return []
    home = Path(spec.submodule_search_locations[0])
    place = home.joinpath(*rest.split(".")) if rest else home
    paths = sorted(place.glob("**/*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return [
        SourceFile(p.relative_to(home.parent).as_posix(), p)
        for p in paths
        if p.is_file() and _wanted(p, home.parent)
    ]


def _wanted(path: Path, base: Path) -> bool:
    return not _NO_DOCUMENTATION & set(path.relative_to(base).with_suffix("").parts)


def read_installed(
    sources: Mapping[str, Sequence[SourceFile]], *, exclude: Sequence[str], shortest: int
) -> Iterator[Item]:
    """Documents of each package in turn, in file and source order; one package's texts are held at a time.

    Texts below `shortest` characters are not documents here and pass unreported, since most docstrings are
    one line; so do the names in `exclude` and what lies below them.
    """
    below = tuple(f"{name}." for name in exclude)
    for package, files in sources.items():
        for item in _topics(files[0], shortest) if package == TOPICS else _package(files, shortest):
            if item.name not in exclude and not item.name.startswith(below):
                yield item


def _topics(file: SourceFile, shortest: int) -> Iterator[Item]:
    """The language reference behind `help()`: one literal dictionary from topic to text."""
    tree = parse(file.path.read_bytes())
    for node in tree.body if tree else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            for key, value in sorted(ast.literal_eval(node.value).items()):
                if len(value) >= shortest:
                    yield Document(f"{TOPICS}.{key}", value, file.name)
            return
    yield Skipped(file.name, "holds no table of topics")


def _package(files: Sequence[SourceFile], shortest: int) -> Iterator[Item]:
    modules: dict[str, ModuleNames] = {}
    texts: list[tuple[Docstring, str]] = []
    for file in files:
        try:
            tree = parse(file.path.read_bytes())
        except OSError as error:
            yield file.unreadable(error)
            continue
        if tree is None:
            yield Skipped(file.name, "not parsable as Python")
            continue
        module = file.name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        if is_private(module.split(".")[0]):
            continue
        modules[module] = names_of(module, tree, is_package=file.name.endswith("__init__.py"))
        texts += [(doc, file.name) for doc in docstrings_of(module, tree) if len(doc.text) >= shortest]
    names = PublicNames(modules)
    for doc, file_name in texts:
        if not any(is_private(part) for part in doc.qualified.split(".")):
            yield Document(names.of(doc.module, doc.qualified), doc.text, file_name)
