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


def partly(step: Step, stage: str, ground: Ground, *, kept: int, units: int) -> Step:
    """A step that would run, with the seconds of those of its `units` that no earlier run kept."""
    left = max(0, units - kept)
    seconds = ground.estimates.each(stage, left)
    if not kept:
        return replace(step, seconds=seconds)
    return replace(step, state="partly done", done=kept, to_do=left, seconds=seconds)


def several(
    ground: Ground, name: str, recipes: Sequence[Recipe], *, why: tuple[str, ...], stage: str
) -> tuple[Step, list[Ref]]:
    """A step of many elements and those that are there; `why` some would be made, `stage` in what time."""
    rows = ground.known.find_many(recipe.fingerprint for recipe in recipes)
    refs = [rows[one.fingerprint].ref for one in recipes if one.fingerprint in rows]
    done, left = len(refs), len(recipes) - len(refs)
    if not left:
        return Step(name, "done", refs=tuple(map(str, refs)), done=done, to_do=0), refs
    seconds = ground.estimates.each(stage, left)
    state: State = "partly done" if done else "to run"
    return Step(name, state, reasons=why, done=done, to_do=left, seconds=seconds), refs
