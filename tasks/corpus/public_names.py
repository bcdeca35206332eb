"""The public name of a documented object: `numpy.linalg.svd`, not `numpy.linalg._linalg.svd`.

Works on the import statements of parsed sources. A package's `__init__` publishes what it defines or imports;
the shortest public path to an object is its name. Where no package publishes it, private parts are dropped.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_MAX_HOPS = 16


@dataclass(slots=True)
class ModuleNames:
    """The names one module defines and imports at its top level."""

    is_package: bool
    defined: set[str] = field(default_factory=set)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Local name -> (module, name there)."""
    starred: list[str] = field(default_factory=list)
    """Modules imported with a star, in order."""
    exported: list[str] | None = None
    """`__all__` where it is a literal list."""


def is_private(part: str) -> bool:
    """A leading underscore hides a name, double underscores on both sides do not."""
    return part.startswith("_") and not (part.startswith("__") and part.endswith("__"))


def top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements a module runs on import, looking into `if`, `try` and `with` but not into functions."""
    pending = list(reversed(tree.body))
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            inner = list(node.body)
            if isinstance(node, (ast.If, ast.Try)):
                inner += node.orelse
            if isinstance(node, ast.Try):
                inner += [statement for handler in node.handlers for statement in handler.body]
            pending.extend(reversed(inner))


def names_of(module: str, tree: ast.Module, *, is_package: bool) -> ModuleNames:
    """Read a module's top-level definitions and imports from its syntax tree."""
    names = ModuleNames(is_package)
    for node in top_level(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.defined.add(node.name)
        elif isinstance(node, ast.Assign):
            targets = [target.id for target in node.targets if isinstance(target, ast.Name)]
            names.defined.update(target for target in targets if target != "__all__")
            if "__all__" in targets and (literal := _literal_names(node.value)) is not None:
                names.exported = literal
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(module, node, is_package)
            for alias in node.names:
                if alias.name == "*":
                    names.starred.append(origin)
                else:
                    names.imported.setdefault(alias.asname or alias.name, (origin, alias.name))
    return names


def _literal_names(value: ast.expr) -> list[str] | None:
    if not isinstance(value, (ast.List, ast.Tuple)):
        return None
    return [e.value for e in value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]


def _absolute(module: str, node: ast.ImportFrom, is_package: bool) -> str:
    """The full name of the module that a `from ... import` names."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    base = parts[: len(parts) - node.level + (1 if is_package else 0)]
    return ".".join([*base, node.module] if node.module else base)


class PublicNames:
    """Public names of the objects in a set of parsed modules."""

    def __init__(self, modules: Mapping[str, ModuleNames]) -> None:
        self._modules = modules
        self._public: dict[tuple[str, str], str] = {}
        for module, names in modules.items():
            if any(is_private(part) for part in module.split(".")):
                continue
            visible = self._visible(module) if names.is_package else set(names.exported or ())
            for name in visible:
                if not is_private(name) and f"{module}.{name}" not in modules:
                    self._offer(self._origin(module, name), f"{module}.{name}")

    def of(self, module: str, qualified: str) -> str:
        """The public name of an object of `module`; `qualified` is "" (the module) or "Class.method"."""
        plain = ".".join(part for part in module.split(".") if not is_private(part))
        if not qualified:
            return plain
        root, _, rest = qualified.partition(".")
        public = self._public.get(self._origin(module, root)) or f"{plain}.{root}"
        return f"{public}.{rest}" if rest else public

    def _offer(self, origin: tuple[str, str], candidate: str) -> None:
        """Keep the shorter path; between equally short ones the alphabetically first."""
        held = self._public.get(origin)
        if held is None or (candidate.count("."), candidate) < (held.count("."), held):
            self._public[origin] = candidate

    def _visible(self, module: str, hops: int = _MAX_HOPS) -> set[str]:
        """The names that importing from a module can give."""
        names = self._modules.get(module)
        if names is None or not hops:
            return set()
        visible = names.defined | set(names.imported) | set(names.exported or ())
        for star in names.starred:
            visible |= self._starred(star, hops - 1)
        return visible

    def _starred(self, module: str, hops: int) -> set[str]:
        names = self._modules.get(module)
        if names is not None and names.exported is not None:
            return set(names.exported)
        return {name for name in self._visible(module, hops) if not name.startswith("_")}

    def _origin(self, module: str, name: str) -> tuple[str, str]:
        """Follow imports to the module that defines a name, as far as the sources are known."""
        for _ in range(_MAX_HOPS):
            names = self._modules.get(module)
            if names is None or name in names.defined:
                break
            if name in names.imported:
                module, name = names.imported[name]
                continue
            onward = next((s for s in names.starred if name in self._starred(s, _MAX_HOPS - 1)), None)
            if onward is None:
                break
            module = onward
        return module, name
