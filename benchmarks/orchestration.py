"""What orchestration costs and what workers bring, on the machine at hand; compared runs alternate.

    python -m benchmarks.orchestration                      2,000 documents
    python -m benchmarks.orchestration --documents 300      a quick look
    python -m benchmarks.orchestration --source FILE        documents from JSON lines with a field `text`
    python -m benchmarks.orchestration --only dask          one section again; the others stay as they were

Every build starts from the same store, in a process of its own, with a Prefect server that runs already. All
compute with one thread, so that workers differ in nothing but their number. Sections are kept as they end.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.child import measure
from benchmarks.figures import Section
from benchmarks.kept_sections import report_sections
from benchmarks.report_file import say

MOST_OVERHEAD, LEAST_GAIN = 1.05, 1.6
_ONE_THREAD = {"CELLAR_THREADS": "1", "OMP_NUM_THREADS": "1"}


class Bench:
    """One store of inputs, a Prefect server, and builds that must all give the same snapshot."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.runs = runs
        self._folder = folder
        self._snapshots: set[str] = set()

    def run(self, task: str, **arguments: Any) -> dict[str, Any]:
        """Measure one build."""
        result = measure(
            f"benchmarks.builds:{task}", environment=_ONE_THREAD, folder=str(self._folder), **arguments
        )
        self._snapshots.add(result["snapshot"])
        if len(self._snapshots) > 1:
            raise RuntimeError(f"builds differ: {self._snapshots}")
        say(f"  {task} {arguments}: {result['seconds']:.2f} s")
        return result


def overhead(bench: Bench) -> Section:
    """The flow in threads against its own step functions."""
    section = Section("a build through Prefect against the same step functions")
    ratios, processor = [], []
    for turn in range(bench.runs):
        tasks = ["direct", "through_prefect"] if turn % 2 == 0 else ["through_prefect", "direct"]
        results = {task: bench.run(task) for task in tasks}
        direct, flow = results["direct"], results["through_prefect"]
        section.figure("step functions", "s").add(direct["seconds"], direct["rss"])
        section.figure("through Prefect, threads", "s").add(flow["seconds"], flow["rss"])
        ratios.append(flow["seconds"] / direct["seconds"])
        processor.append(flow["cpu_s"] / direct["cpu_s"])
    section.notes.append(_counts(direct))
    section.notes.append(f"Ratios of neighbouring runs: {' '.join(f'{ratio:.3f}' for ratio in ratios)}.")
    section.require("through Prefect / step functions, median", median(ratios), most=MOST_OVERHEAD)
    section.require("the same in processor time of the building process", median(processor))
    return section


def dask(bench: Bench) -> Section:
    """Two Dask workers against one."""
    section = Section("a build on one and on two Dask workers")
    gains = []
    for turn in range(bench.runs):
        order = (1, 2) if turn % 2 == 0 else (2, 1)
        results = {workers: bench.run("on_dask", workers=workers) for workers in order}
        for workers in (1, 2):
            section.figure(f"Dask workers: {workers}", "s").add(results[workers]["seconds"])
            section.figure(f"start of a cluster of {workers}", "s").add(results[workers]["started_s"])
        gains.append(results[1]["seconds"] / results[2]["seconds"])
    section.notes.append(f"Gains of neighbouring runs: {' '.join(f'{gain:.3f}' for gain in gains)}.")
    section.require("one worker / two workers, median", median(gains), least=LEAST_GAIN)
    return section


SECTIONS: dict[str, Callable[[Bench], Section]] = {"overhead": overhead, "dask": dask}


def main() -> int:
    """Run the sections that the command line asks for; 0 if all thresholds of all sections are met."""
    options = _options()
    return report_sections(
        f"orchestration-{options.documents}",
        options,
        SECTIONS,
        lambda: _bench(options),
        about=f"{options.documents:,} documents, one thread each",
    )


@contextmanager
def _bench(options: argparse.Namespace) -> Iterator[Bench]:
    from flows.serving.api import prefect_api

    root = Path(tempfile.mkdtemp(prefix="cellar-benchmark-", dir=options.work))
    try:
        with prefect_api(root / "prefect"):
            say("inputs ...")
            measure(
                "benchmarks.builds:prepare",
                folder=str(root),
                documents=options.documents,
                source=str(options.source) if options.source else None,
                codec_steps=options.codec_steps,
                shards=options.shards,
            )
            yield Bench(root, options.runs)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _counts(result: dict[str, Any]) -> str:
    return (
        f"{result['documents']:,} documents, {result['published']:,} published; {result['tokens']:,} tokens "
        f"in {result['blocks']:,} blocks, {result['steps']:,} steps; {result['packs']:,} packs, "
        f"{result['bytes']:,} bytes in all."
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What orchestration costs and what workers bring.")
    parser.add_argument("--documents", type=int, default=2_000, help="memories to build (default: 2,000)")
    parser.add_argument("--shards", type=int, default=32, help="shards, half of which are built (32)")
    parser.add_argument("--codec-steps", type=int, default=300, help="updates of the codec (default: 300)")
    parser.add_argument("--source", type=Path, help="JSON lines with a field `text` (default: documentation)")
    parser.add_argument("--runs", type=int, default=3, help="runs of which the median counts (default: 3)")
    parser.add_argument("--only", type=lambda text: text.split(","), help=f"of: {', '.join(SECTIONS)}")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()), help="scratch space")
    parser.add_argument("--out", type=Path, help="the JSON file (default: build/benchmarks/...)")
    parser.add_argument("--json", action="store_true", help="print the JSON, not the Markdown")
    options = parser.parse_args()
    unknown = set(options.only or ()) - set(SECTIONS)
    if unknown:
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    if options.documents < 10 or options.runs < 1 or options.shards < 4:
        parser.error("at least ten documents, four shards and one run are needed")
    return options


if __name__ == "__main__":
    sys.exit(main())
