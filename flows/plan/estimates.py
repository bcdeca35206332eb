"""About what a step takes: seconds that earlier runs remember, bytes of what they published."""

import math
import statistics
from collections.abc import Mapping
from pathlib import Path

from flows.formatting import number, section
from flows.plan.steps import Known
from flows.timing import Spent, remembered


class Estimates:
    """What is known of earlier runs on this machine and in the store."""

    def __init__(self, known: Known, work_dir: Path) -> None:
        self._known = known
        self._spent: Mapping[str, list[Spent]] = remembered(work_dir)

    def seconds(self, *stages: str, share: float = 1.0) -> float | None:
        """The median of the earlier runs of the first stage that has some, times how much there is to do."""
        found = next((runs for stage in stages if (runs := self._spent.get(stage))), [])
        return statistics.median(run.seconds for run in found) * share if found else None

    def memory_seconds(self, to_do: int, total: int) -> float | None:
        """Seconds of so many of all documents, in proportion to the runs with the most similar number."""
        runs = [(run.documents or total, run.seconds) for run in self._spent.get("memory", ())]
        if not runs or not to_do or not total:
            return None
        nearest = min((count for count, _ in runs), key=lambda count: abs(math.log(count / to_do)))
        alike = statistics.median(seconds for count, seconds in runs if count == nearest)
        return alike * to_do / nearest

    def each(self, stage: str, count: int) -> float | None:
        """Seconds of so many units of a stage, by the median of what one took in earlier runs."""
        runs = [run.seconds / run.documents for run in self._spent.get(stage, ()) if run.documents]
        return statistics.median(runs) * count if runs and count else None

    def trained(self, stage: str, full_name: str, steps: int) -> float | None:
        """Seconds of a training of so many updates, from runs like the one that made the newest version."""
        row = self._known.latest(full_name)
        before = number(section(row.provenance, "params").get("steps")) if row is not None else None
        return self.seconds(stage, share=steps / before if before and before >= 1 else 1.0)

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
