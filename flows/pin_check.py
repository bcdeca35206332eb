"""Whether everything that the pin files name is in the store and intact.

DVC and git see pin files only, and a pin stays "up to date" when the object behind it is gone: somebody has
to look at the store itself.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from flows.pins import Pin, Stage
from store import Ref, Store
from store.errors import IntegrityError, NotFoundError
from store.trust import verify_snapshot
from tasks.progress import Progress, silent


@dataclass(frozen=True)
class PinProblem:
    """Something that the pin of a stage names and that is not there as it was published."""

    stage: Stage
    what: str
    """The element `kind/name@version`, or `snapshot <id>`."""
    problem: str


@dataclass(frozen=True)
class PinReport:
    """What was looked at on behalf of some pins, and everything that is wrong."""

    stages: tuple[Stage, ...]
    elements: int
    snapshots: int
    bytes_read: int
    problems: tuple[PinProblem, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return asdict(self)


def check_pins(store: Store, pins: Mapping[Stage, Pin], progress: Progress = silent) -> PinReport:
    """Read every element and snapshot that the pins name; what several pins name is read once.

    `progress` counts the bytes of the snapshot that is being read. Raises `StorageUnavailable` if the storage
    stops answering; whatever else is wrong is reported.
    """
    problems: list[PinProblem] = []
    elements: dict[str, int] = {}
    snapshots: dict[str, int] = {}
    for stage, pin in pins.items():
        for ref in pin.references():
            if ref.version not in elements:
                elements[ref.version], problem = _read(store, ref)
                if problem:
                    problems.append(PinProblem(stage, str(ref), problem))
        if pin.snapshot is not None and pin.snapshot not in snapshots:
            snapshots[pin.snapshot], found = _read_snapshot(store, pin.snapshot, progress)
            problems += [PinProblem(stage, f"snapshot {pin.snapshot}", problem) for problem in found]
    read = sum(elements.values()) + sum(snapshots.values())
    return PinReport(tuple(pins), len(elements), len(snapshots), read, tuple(problems))


def _read(store: Store, ref: Ref) -> tuple[int, str]:
    """Bytes of an element, and what is wrong with it."""
    try:
        return len(store.read(ref)), ""
    except (IntegrityError, NotFoundError) as error:
        return 0, str(error)


def _read_snapshot(store: Store, identity: str, progress: Progress) -> tuple[int, list[str]]:
    """Bytes of a snapshot's payloads, and what is wrong with them."""
    try:
        report = verify_snapshot(store, store.snapshot(identity), progress=progress)
    except (IntegrityError, NotFoundError) as error:
        return 0, [str(error)]
    return report.bytes_read, [finding.problem for finding in report.findings]
