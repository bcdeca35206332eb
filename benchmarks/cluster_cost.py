"""What a build of many elements takes on a cluster, on paper: arithmetic over figures measured here.

    python -m benchmarks.cluster_cost --measure                measure the figures, keep and use them
    python -m benchmarks.cluster_cost                          52,809, 1 M and 100 M elements, from these
    python -m benchmarks.cluster_cost --core-s .08 --pack-bytes 16626       with figures of a larger build
    python -m benchmarks.cluster_cost --hours 2 --core-hour .03 --elements 5000000

Prices are parameters; the defaults are list prices of one provider as of 2025, in US dollars, to be replaced.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any

from benchmarks.child import measure
from benchmarks.figures import number

SIZES = (52_809, 1_000_000, 100_000_000)
_WRITES = ("PutObject", "ListObjectsV2")
"""Requests that are billed as writes."""


_SHARDS_A_WORKER = 4
"""With fewer, workers wait for the last ones to finish."""


@dataclass(frozen=True)
class Measured:
    """What one element, unit, shard and commit cost, from one build into a real S3 server.

    `core_s` is processor time an element; `pack_bytes`, `part_bytes`, `index_bytes` and `result_bytes`
    (what the flow's own process keeps) are bytes an element. Requests: writes and reads of a unit; of a shard
    beside its units; of a commit for each unit, and beside them.
    """

    core_s: float
    pack_bytes: float
    part_bytes: float
    index_bytes: float
    result_bytes: float
    unit_writes: float
    unit_reads: float
    shard_writes: float
    shard_reads: float
    commit_unit_reads: float
    commit_rest: float


@dataclass(frozen=True)
class Plan:
    """How a build is laid out, and prices in dollars."""

    hours: float
    unit: int
    shard: int
    per_build: int
    core_hour: float
    gb_month: float
    writes_1000: float
    reads_1000: float


def figures(elements: int, plan: Plan, one: Measured) -> dict[str, float]:
    """All that follows for so many elements."""
    builds = ceil(elements / plan.per_build)
    shards, units = ceil(elements / plan.shard), ceil(elements / plan.unit)
    core_hours = elements * one.core_s / 3600
    workers = max(1, ceil(core_hours / plan.hours))
    writes = units * one.unit_writes + shards * one.shard_writes + builds * one.commit_rest
    reads = units * (one.unit_reads + one.commit_unit_reads) + shards * one.shard_reads
    busy = max(1, ceil(min(elements, plan.per_build) / plan.shard) // _SHARDS_A_WORKER)
    stored = elements * (one.pack_bytes + one.part_bytes + one.index_bytes)
    seconds = core_hours * 3600 / workers
    return {
        "builds": builds,
        "builds side by side": ceil(workers / busy),
        "shards": shards,
        "core-hours": core_hours,
        "workers of one core": workers,
        "hours": seconds / 3600,
        "elements a worker": elements / workers,
        "packs": units,
        "MB a pack": plan.unit * one.pack_bytes / 1e6,
        "GB stored": stored / 1e9,
        "write requests": writes,
        "read requests": reads,
        "writes a second, mean": writes / seconds,
        "reads a second, mean": reads / seconds,
        "GB in the process of a flow": min(elements, plan.per_build) * one.result_bytes / 1e9,
        "$ of cores": core_hours * plan.core_hour,
        "$ of requests": writes / 1000 * plan.writes_1000 + reads / 1000 * plan.reads_1000,
        "$ of storage a month": stored / 1e9 * plan.gb_month,
    }


def measured(small: dict[str, Any], large: dict[str, Any]) -> Measured:
    """Figures from two builds of the same documents, with small and with large units."""
    writes = {name: _writes(run["requests_of_shards"]) for name, run in (("s", small), ("l", large))}
    reads = {name: _reads(run["requests_of_shards"]) for name, run in (("s", small), ("l", large))}
    more = small["units"] - large["units"]
    unit_writes, unit_reads = (writes["s"] - writes["l"]) / more, (reads["s"] - reads["l"]) / more
    commits = [sum(run["requests_of_commit"].values()) for run in (small, large)]
    commit_unit = (commits[0] - commits[1]) / more
    documents, shards, units = large["documents"], large["shards"], large["units"]
    return Measured(
        core_s=large["cpu_s"] / documents,
        pack_bytes=large["pack_bytes"] / documents,
        part_bytes=large["part_bytes"] / documents,
        index_bytes=large["index_bytes"] / documents,
        result_bytes=large["result_bytes"] / documents,
        unit_writes=unit_writes,
        unit_reads=unit_reads,
        shard_writes=(writes["l"] - units * unit_writes) / shards,
        shard_reads=(reads["l"] - units * unit_reads) / shards,
        commit_unit_reads=commit_unit,
        commit_rest=commits[1] - units * commit_unit,
    )


def _writes(requests: dict[str, int]) -> int:
    return sum(count for name, count in requests.items() if name in _WRITES)


def _reads(requests: dict[str, int]) -> int:
    return sum(requests.values()) - _writes(requests)


def measure_here(documents: int, codec_steps: int) -> Measured:
    """Build into a SeaweedFS server of its own, with units of 4 and of 32 documents."""
    from flows.serving.api import prefect_api
    from tests.seaweedfs import running_server

    root = Path(tempfile.mkdtemp(prefix="cellar-benchmark-"))
    (root / "s3").mkdir()
    try:
        with prefect_api(root / "prefect"), running_server(root / "s3") as server:
            measure(
                "benchmarks.builds:prepare",
                folder=str(root),
                documents=documents,
                source=None,
                codec_steps=codec_steps,
                shards=8,
            )
            environment = {**server.environment(), "CELLAR_THREADS": "1", "OMP_NUM_THREADS": "1"}
            runs = [
                measure(
                    "benchmarks.builds:on_s3",
                    environment=environment,
                    folder=str(root),
                    url=server.url(),
                    unit_documents=unit,
                )
                for unit in (4, 32)
            ]
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return measured(*runs)


def table(sizes: Sequence[int], plan: Plan, one: Measured) -> list[str]:
    """Markdown."""
    columns = [figures(size, plan, one) for size in sizes]
    head = ["", *(f"{size:,}" for size in sizes)]
    rows = [[name, *(number(column[name]) for column in columns)] for name in columns[0]]
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def main() -> int:
    """Print what was measured, and what follows."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers end and the space is freed
    if options.measure:
        one = measure_here(options.documents, options.codec_steps)
        options.figures.parent.mkdir(parents=True, exist_ok=True)
        options.figures.write_text(json.dumps(asdict(one), indent=1) + "\n")
    elif not options.figures.exists():
        print(f"no figures in {options.figures}; run with --measure first", file=sys.stderr)
        return 2
    given = {name: getattr(options, name) for name in ("core_s", "pack_bytes")}
    one = Measured(
        **json.loads(options.figures.read_text())
        | {name: value for name, value in given.items() if value is not None}
    )
    plan = Plan(**{name: getattr(options, name) for name in Plan.__dataclass_fields__})
    print(json.dumps(asdict(one), indent=1))
    print("\n".join(table(options.elements or SIZES, plan, one)))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What a build takes on a cluster, on paper.")
    parser.add_argument("--measure", action="store_true", help="measure the figures on this machine first")
    parser.add_argument("--documents", type=int, default=512, help="memories of that build (512)")
    parser.add_argument("--codec-steps", type=int, default=300, help="updates of its codec (300)")
    parser.add_argument("--figures", type=Path, default=Path("build/benchmarks/cluster_cost.json"))
    parser.add_argument("--core-s", type=float, help="seconds of one core an element, measured elsewhere")
    parser.add_argument("--pack-bytes", type=float, help="bytes of an element, measured elsewhere")
    parser.add_argument("--elements", type=int, nargs="*", help="sizes (52809 1000000 100000000)")
    parser.add_argument("--hours", type=float, default=8, help="that the computation may take (8)")
    parser.add_argument("--unit", type=int, default=2560, help="memory.unit_documents (2560)")
    parser.add_argument("--shard", type=int, default=10_240, help="elements a shard (10240)")
    parser.add_argument("--per-build", type=int, default=1_000_000, help="elements of one build (1000000)")
    parser.add_argument("--core-hour", type=float, default=0.045, help="price of a core for an hour (.045)")
    parser.add_argument("--gb-month", type=float, default=0.023, help="price of storage (.023)")
    parser.add_argument("--writes-1000", type=float, default=0.005, help="price of 1,000 writes (.005)")
    parser.add_argument("--reads-1000", type=float, default=0.0004, help="price of 1,000 reads (.0004)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
