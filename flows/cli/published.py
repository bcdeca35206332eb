"""Figures of evaluations: the file that each kind is written to, and how it is shown."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.cli.session import Session


@dataclass(frozen=True)
class Figures:
    """A kind of figures: its file, the member that no other kind has, and its lines for people.

    `page` writes a page on them into a folder and returns its path, where the kind has one of its own.
    """

    file: str
    member: str
    lines: Callable[[dict[str, Any]], list[str]]
    page: Callable[[dict[str, Any], Path], Path] | None = None


def write_figures(session: Session, result: dict[str, Any], out: Path, kind: Figures) -> None:
    """Write figures into a folder, with their page, and show them."""
    _write(session, result, out, kind, *_shown(result, out, kind))


def show_published(session: Session, made: Mapping[str, Any], out: Path, kind: Figures) -> None:
    """Write the `evaluation` that a flow made into a folder, with what else it made and costs; show it.

    Raises `BadPayload` where the store has one of that name, of whoever made it, that cannot be shown.
    """
    from store import Ref
    from store.errors import CellarError
    from tasks.errors import BadPayload

    store = session.open_store()
    evaluation = Ref.parse(made["evaluation"])
    row = store.catalog().get(evaluation.version)
    costs = {} if row is None else dict(row.facts)
    payload = store.read(evaluation)
    try:
        result = {**made, **json.loads(payload), "costs": costs}
        lines, pages = _shown(result, out, kind)
    except CellarError:
        raise
    except (ValueError, LookupError, ArithmeticError, TypeError, AttributeError, RecursionError) as error:
        raise BadPayload(
            f"{evaluation} is no summary that can be shown; use a store that you trust"
        ) from error
    _write(session, result, out, kind, lines, pages)


def _shown(result: dict[str, Any], out: Path, kind: Figures) -> tuple[list[str], list[Path]]:
    """Figures as lines, and their page, written; everything in them comes from a store."""
    lines = list(kind.lines(result))
    return lines, [kind.page(result, out)] if kind.page else []


def _write(
    session: Session, result: dict[str, Any], out: Path, kind: Figures, lines: list[str], pages: list[Path]
) -> None:
    path = out / kind.file
    path.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    session.emit(result, [*lines, *(f"wrote {one}" for one in (path, *pages))])


def ranged(figure: Mapping[str, float]) -> str:
    """A figure with the bounds of its interval."""
    return f"{figure['value']:.4f} [{figure['low']:.4f}, {figure['high']:.4f}]"
