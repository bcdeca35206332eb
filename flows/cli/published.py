"""A published evaluation, written to a file and shown."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flows.cli.session import Session


def show_published(
    session: Session, made: Mapping[str, Any], path: Path, lines: Callable[[dict[str, Any]], list[str]]
) -> None:
    """Write the `evaluation` that a flow made to a file, with what else it made and the costs; show lines."""
    from store import Ref

    store = session.open_store()
    evaluation = Ref.parse(made["evaluation"])
    row = store.catalog().get(evaluation.version)
    costs = {} if row is None else dict(row.facts)
    summary = json.loads(store.read(evaluation))
    result = {**made, **summary, "costs": costs}
    path.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    session.emit(result, [*lines(result), f"wrote {path}"])


def ranged(figure: Mapping[str, float]) -> str:
    """A figure with the bounds of its interval."""
    return f"{figure['value']:.4f} [{figure['low']:.4f}, {figure['high']:.4f}]"
