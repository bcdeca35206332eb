"""About what a step takes: seconds that earlier runs remember, bytes of what they published."""

import statistics
from collections.abc import Mapping
from pathlib import Path

from flows.formatting import number, section
from flows.plan.steps import Known
from flows.timing import remembered


class Estimates:
    """What is known of earlier runs on this machine and in the store."""

    def __init__(self, known: Known, work_dir: Path) -> None:
        self._known = known
        self._seconds: Mapping[str, list[float]] = remembered(work_dir)

    def seconds(self, stage: str, share: float = 1.0) -> float | None:
        """The median of the stage's earlier runs, times how much of such a run there is to do."""
        found = self._seconds.get(stage)
        return statistics.median(found) * share if found else None

    def trained(self, stage: str, full_name: str, steps: int) -> float | None:
        """Seconds of a training of so many updates, from runs like the one that made the newest version."""
        row = self._known.latest(full_name)
        before = number(section(row.provenance, "params").get("steps")) if row is not None else None
        return self.seconds(stage, steps / before if before and before >= 1 else 1.0)

    def bytes(self, *full_names: str) -> int | None:
        """Payload bytes of the newest versions of some names."""
        rows = [self._known.latest(name) for name in full_names]
        sizes = [row.length for row in rows if row is not None]
        return sum(sizes) if len(sizes) == len(rows) else None

    def memory_bytes(self) -> float | None:
        """Mean payload bytes of a memory."""
        if self._known.store is None:
            return None
        total = count = 0
        for table in self._known.store.catalog().scan(("length",), "memory"):
            total += sum(table["length"].to_pylist())
            count += len(table)
        return total / count if count else None
