"""Documentation inside Python sources, read as data: docstrings and literal add_docstr / add_newdoc calls.

Sources are parsed, never imported or executed.
"""

import ast
import inspect
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

_ATTACHING_CALLS = {"add_docstr", "_add_docstr", "add_newdoc"}


@dataclass(frozen=True, slots=True)
class Docstring:
    """A text and the object it documents: `qualified` is "" for the module itself, or "Class.method".

    `module` differs from the file's own module where a call documents an object from elsewhere.
    """

    module: str
    qualified: str
    text: str


def parse(source: bytes) -> ast.Module | None:
    """The syntax tree of a source file, or None where this Python cannot parse it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            return None


def docstrings_of(module: str, tree: ast.Module) -> Iterator[Docstring]:
    """Every docstring of a module in source order, then the texts that its calls attach to other objects."""
    yield from _walk(module, "", tree)
    for node in tree.body:
        yield from _attached(module, node)


def _walk(module: str, qualified: str, node: ast.Module | ast.ClassDef) -> Iterator[Docstring]:
    """Docstrings of a module or class and of what it defines; functions inside functions are private."""
    yield from _own(module, qualified, node)
    for child in _definitions(node.body):
        name = f"{qualified}.{child.name}" if qualified else child.name
        if isinstance(child, ast.ClassDef):
            yield from _walk(module, name, child)
        else:
            yield from _own(module, name, child)


def _own(
    module: str, qualified: str, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Docstring]:
    text = ast.get_docstring(node)
    if text:
        yield Docstring(module, qualified, text)


def _definitions(body: list[ast.stmt]) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        elif isinstance(node, (ast.If, ast.Try)):
            yield from _definitions([*node.body, *node.orelse])


def _attached(module: str, node: ast.stmt) -> Iterator[Docstring]:
    """The texts of a statement like `add_docstr(torch.cat, "...")` or `svd = _add_docstr(_C.svd, "...")`."""
    if not isinstance(node, (ast.Expr, ast.Assign)) or not isinstance(node.value, ast.Call):
        return
    call = node.value
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if function not in _ATTACHING_CALLS:
        return
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        place, name = module, node.targets[0].id
    else:
        place, name = _target(call.args[0]) if call.args else ("", "")
    if function == "add_newdoc" and len(call.args) == 3:
        name = _constant(call.args[1]) or ""
        yield from _newdoc(_constant(call.args[0]) or "", name, call.args[2])
    elif place and name and len(call.args) == 2 and (text := _constant(call.args[1])):
        yield Docstring(place, name, inspect.cleandoc(text))


def _newdoc(place: str, name: str, value: ast.expr) -> Iterator[Docstring]:
    """numpy's three forms: a text, an (attribute, text) pair, a list of such pairs."""
    if not place or not name:
        return
    if text := _constant(value):
        yield Docstring(place, name, inspect.cleandoc(text))
        return
    for pair in value.elts if isinstance(value, ast.List) else [value]:
        if isinstance(pair, ast.Tuple) and len(pair.elts) == 2:
            attribute, text = _constant(pair.elts[0]), _constant(pair.elts[1])
            if attribute and text:
                yield Docstring(place, f"{name}.{attribute}", inspect.cleandoc(text))


def _target(node: ast.expr) -> tuple[str, str]:
    """The (module, name) that a dotted expression such as `torch.Tensor.add_` names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or not parts:
        return "", ""
    return ".".join([node.id, *reversed(parts[1:])]), parts[0]


def _constant(node: ast.expr) -> str | None:
    """A string literal, or literals joined with `+`; None for anything computed."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _constant(node.left), _constant(node.right)
        return left + right if left is not None and right is not None else None
    return None
