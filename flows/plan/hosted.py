"""What plans of flows on a frozen host share: the host as fingerprints know it, and steps of one element."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from flows.place import device_of
from flows.plan.estimates import Estimates
from flows.plan.steps import Known, State, Step
from flows.settings import Settings
from store import Recipe, Ref, Store
from tasks.hosts.params import HostParams

if TYPE_CHECKING:
    import torch


NEVER = ("never evaluated so",)


@dataclass(frozen=True)
class PlannedHost:
    """The newest host of some parameters and the numbers that it would compute in; nobody opens it."""

    ref: Ref
    dtype: "torch.dtype"


@dataclass(frozen=True)
class Ground:
    """What every plan of a flow on a host begins with."""

    store: Store
    known: Known
    estimates: Estimates
    host: PlannedHost
    work_dir: Path
    """Where interrupted work keeps what it has."""

    @classmethod
    def of(cls, store: Store, params: HostParams, settings: Settings) -> "Ground":
        """Raises `UnknownHost` where the store has no host of that name."""
        import torch

        from tasks.hosts import find_host, host_dtype

        known = Known(store)
        numbers = host_dtype(params.dtype, torch.device(device_of(settings)))
        host = PlannedHost(find_host(store, params.name).ref, numbers)
        return cls(store, known, Estimates(known, settings.work_dir), host, settings.work_dir)


def made(step: Step) -> Ref | None:
    """What a step of one element made, None where it would run."""
    return None if step.runs else Ref.parse(step.refs[0])


def partly(step: Step, stage: str, ground: Ground, *, units: int, unit: str, kept: int = 0) -> Step:
    """A step that would run, with its `units`, how many an earlier run kept, and seconds of the others.

    Where nobody can count them without the host they are those that there are at most.
    """
    left = max(0, units - kept)
    seconds = ground.estimates.each(stage, left)
    state: State = "partly done" if kept else step.state
    return replace(step, state=state, done=kept, to_do=left, unit=unit, seconds=seconds)


def evaluation_of(
    ground: Ground,
    recipe: Recipe,
    stage: str,
    *,
    units: int,
    unit: str,
    step: str = "evaluation",
    name: str | None = None,
) -> Step:
    """The step of an evaluation by a recipe, with `name` under that name."""
    if (row := ground.known.find(recipe, name=name)) is not None:
        return Step(step, "done", refs=(str(row.ref),))
    return partly(Step(step, "to run", reasons=NEVER), stage, ground, units=units, unit=unit)


def several(
    ground: Ground, name: str, recipes: Sequence[Recipe], *, why: tuple[str, ...], stage: str, unit: str
) -> tuple[Step, list[Ref]]:
    """A step of many elements and those that are there; `why` some would be made, `stage` in what time."""
    rows = ground.known.find_many(recipe.fingerprint for recipe in recipes)
    refs = [rows[one.fingerprint].ref if one.fingerprint in rows else None for one in recipes]
    return of_many(ground, name, refs, why=why, stage=stage, unit=unit), [one for one in refs if one]


def of_many(
    ground: Ground, name: str, refs: Sequence[Ref | None], *, why: tuple[str, ...], stage: str, unit: str
) -> Step:
    """A step of many elements, None for those that would be made."""
    found = tuple(str(ref) for ref in refs if ref is not None)
    done, left = len(found), len(refs) - len(found)
    if not left:
        return Step(name, "done", refs=found, done=done, to_do=0, unit=unit)
    seconds = ground.estimates.each(stage, left)
    state: State = "partly done" if done else "to run"
    return Step(name, state, reasons=why, done=done, to_do=left, unit=unit, seconds=seconds)
