"""Evaluations as the store records them: which one is of a snapshot, and which snapshots have none yet."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from store import Ref, Row, Store
from store.errors import IntegrityError, SnapshotNotFound
from tasks.evaluation.params import EvaluationParams

_SUMMARY = "application/json"

Warn = Callable[[object], None]
"""Is told of what is passed over."""


def say_nothing(_: object) -> None:
    """For callers whom nobody listens to."""


@dataclass(frozen=True)
class Evaluation:
    """A published evaluation of a snapshot and its figures; what it cost is among them as `costs`."""

    row: Row
    figures: Mapping[str, Any]
    settings: EvaluationParams
    """The parameters that it was made with."""
    core: str
    """The core that it was made against."""

    @classmethod
    def read(cls, store: Store, row: Row) -> "Evaluation":
        """Read a record; raises `IntegrityError` for one that this version does not write, or is damaged."""
        what = f"{row.name}@{row.version[:12]}"
        data = store.read(row)
        try:
            figures = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise IntegrityError(f"{what} holds no JSON") from error
        if not isinstance(figures, dict):
            raise IntegrityError(f"{what} holds no figures by name")
        try:
            settings = EvaluationParams.model_validate(figures.get("settings"))
        except ValidationError as error:
            raise IntegrityError(f"{what} does not say by which settings it was made") from error
        core = row.provenance.get("core")
        try:
            Ref.parse(core if isinstance(core, str) else "")
        except ValueError as error:
            raise IntegrityError(f"{what} does not say against which core it was made") from error
        return cls(row, {**figures, "costs": row.facts}, settings, str(core))

    def to_dict(self) -> dict[str, Any]:
        """JSON values that say which evaluation it is."""
        return {
            "evaluation": str(self.row.ref),
            "core": self.core,
            "settings": self.settings.model_dump(mode="json"),
            "tasks": self.figures.get("tasks"),
        }


def evaluation_of(
    store: Store,
    snapshot: str,
    name: str,
    *,
    core: str | None = None,
    settings: EvaluationParams | None = None,
    warn: Warn = say_nothing,
) -> Evaluation | None:
    """The newest evaluation `evaluation/<name>` of a snapshot, with this core (by reference) and settings
    where they are given. Records that cannot be read are passed over, and `warn` is told."""
    for row in reversed(store.catalog().versions(f"evaluation/{name}")):
        if row.provenance.get("snapshot") != snapshot or row.media != _SUMMARY:
            continue
        if core is not None and row.provenance.get("core") != core:
            continue
        try:
            found = Evaluation.read(store, row)
        except IntegrityError as error:
            warn(f"an evaluation is passed over: {error}")
            continue
        if settings is None or found.settings == settings:
            return found
    return None


def unevaluated(store: Store, evaluation: str, heads: Sequence[str] | None = None) -> list[str]:
    """Snapshots that a head points or pointed to and that no such evaluation is of, the newest first.

    Snapshots that were removed since, and those without memories, are left out.

    Raises `SnapshotNotFound` if there is no head of a given name.
    """
    known = store.heads()
    for name in heads or ():
        if name not in known:
            raise SnapshotNotFound(f"there is no head {name} in {store.url}; `cellar head` lists them")
    positions = [position for name in heads or known for position in store.head_log(name)]
    seen = dict.fromkeys(p.snapshot for p in sorted(positions, key=lambda p: p.time, reverse=True))
    done = {
        str(row.provenance.get("snapshot"))
        for row in store.catalog().rows("evaluation")
        if row.name == f"evaluation/{evaluation}"
    }
    return [snapshot for snapshot in seen if snapshot not in done and _has_memories(store, snapshot)]


def _has_memories(store: Store, snapshot: str) -> bool:
    try:
        return "memory" in store.snapshot(snapshot).kinds
    except SnapshotNotFound:
        return False
