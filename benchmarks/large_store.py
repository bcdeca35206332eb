"""Answer the same tasks from ever larger stores: coverage, latency, active state, memory, and who did it.

    make demo
    python -m benchmarks.large_store                         up to 52,809 memories
    python -m benchmarks.large_store --elements 6000         a quick look
    python -m benchmarks.large_store --store FOLDER --pins FOLDER   a finished store elsewhere

The demo's store is copied, and grows by memories of synthetic texts (`benchmarks.scale_text`) that its own
codec encodes, without the steps of a worker: they stand in the way of retrieval and are never evidence that a
task needs. Tasks are cut from the demo's test-split documents, so that every store can answer all of them;
index recipe, reranker and core stay the demo's. Each part runs in a process of its own.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks.child import measure
from benchmarks.figures import Section
from benchmarks.one_section import add_output_options, report_section
from benchmarks.report_file import say

ELEMENTS = 52_809
TOKENS_EACH = 502
RUNS = "benchmarks.large_store_runs"


def main() -> int:
    """Run the benchmark; 0 if the checks hold."""
    options = _options()

    def measured(root: Path) -> tuple[Section, dict[str, Any]]:
        say("copy of the finished store ...")
        shutil.copytree(options.store, root / "store")
        shutil.copytree(options.pins, root / "pins")
        return run(root, options)

    return report_section(f"large-store-{options.elements}", options, measured)


def run(root: Path, options: argparse.Namespace) -> tuple[Section, dict[str, Any]]:
    """All parts, in order, and what they found; sizes triple up to that of the whole store."""
    folder = str(root)
    say("memories of synthetic texts ...")
    grown = measure(f"{RUNS}:grow", folder=folder, elements=options.elements, tokens_each=TOKENS_EACH)
    sizes = [options.elements]
    while sizes[0] > 3 * grown["own"]:
        sizes.insert(0, sizes[0] // 3)
    sizes.insert(0, grown["own"])
    params = None if options.params is None else str(options.params.absolute())
    stores: list[dict[str, Any]] = []
    snapshot = None
    for size in sizes:
        say(f"index of {size:,} memories ...")
        built = measure(f"{RUNS}:index", folder=folder, elements=size, params=params, smaller=snapshot)
        snapshot = built["snapshot"]
        say(f"tasks against {size:,} memories ...")
        answered = measure(
            f"{RUNS}:answer", folder=folder, snapshot=snapshot, params=params, latency=options.queries
        )
        stores.append({"elements": size, "index": built, "answers": answered})
    say("leaving elements out, and replacing one ...")
    moved = measure(
        f"{RUNS}:localise", folder=folder, snapshot=snapshot, params=params, most=options.left_out
    )
    found = {"grown": grown, "stores": stores, "localised": moved}
    return summary(found), {"found": found}


def summary(found: dict[str, Any]) -> Section:
    """Figures by size of the store, and what has to hold at every size."""
    stores, moved, grown = found["stores"], found["localised"], found["grown"]
    section = Section(f"The same {stores[0]['answers']['tasks']:,} tasks on stores of growing size")
    for one in stores:
        answers, index = one["answers"], one["index"]
        of = f"{one['elements']:,} memories"
        section.figure(f"{of}: candidate recall", "").add(answers["candidate_recall"])
        section.figure(f"{of}: coverage, right element or the same text", "").add(answers["coverage"])
        section.figure(f"{of}: greedy exact, retrieved", "").add(answers["greedy_exact"])
        section.figure(f"{of}: NLL retrieved", "nats").add(answers["nll"])
        section.figure(f"{of}: search alone, median", "ms").add(answers["search_p50_ms"])
        section.figure(f"{of}: end to end, median", "ms").add(answers["p50_ms"])
        section.figure(f"{of}: end to end, 99 %", "ms").add(answers["p99_ms"])
        section.figure(f"{of}: active values a query", "").add(answers["active_values"])
        section.figure(f"{of}: bytes read a query", "B").add(answers["bytes_read"])
        section.figure(f"{of}: opening the index", "s").add(answers["open_seconds"], answers["rss"])
        section.figure(f"{of}: decoding what is new and making the index", "s").add(
            index["seconds"], index["rss"]
        )
    section.figure("leaving the answering element out: rise of NLL", "nats").add(moved["rise"])
    section.figure("leaving one element out of the index", "ms").add(moved["remove_ms"])
    section.figure("leaving an element out: share of its tasks that moved", "").add(moved["moved_share"])
    section.require("leaving an element out: tasks of others that moved", moved["others_moved"], most=0)
    section.require("replacing an element: its tasks that changed", moved["replaced_changed"], least=1.0)
    section.require("replacing an element: tasks of others that changed", moved["replaced_others"], most=0)
    failures = ", ".join(f"{why} {count}" for why, count in moved["failures"].items())
    section.notes += [
        f"{grown['own']:,} memories are the demo's, {grown['made']:,} of {grown['tokens']:,} synthetic "
        f"tokens ({grown['token_recall']:.3f} of them decoded right), {grown['bytes']:,} bytes, "
        f"published in {grown['seconds']:.0f} s",
        f"wrong answers with retrieved evidence on the whole store, by what failed first: {failures}",
    ]
    return section


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Answer the same tasks from ever larger stores.")
    parser.add_argument("--elements", type=int, default=ELEMENTS, help=f"memories (default: {ELEMENTS:,})")
    parser.add_argument("--queries", type=int, default=200, help="tasks timed one by one (default: 200)")
    parser.add_argument("--left-out", type=int, default=100, help="elements left out in turn (default: 100)")
    parser.add_argument("--store", type=Path, default=Path("build/demo/store"), help="a finished store")
    parser.add_argument("--pins", type=Path, default=Path("build/demo/pins"), help="its pin files")
    parser.add_argument("--params", type=Path, help="the parameter file that it was made with")
    add_output_options(parser)
    options = parser.parse_args()
    if not (options.store / "format.json").is_file() or not options.pins.is_dir():
        parser.error(f"{options.store} and {options.pins} hold no finished demo; run `make demo` first")
    return options


if __name__ == "__main__":
    sys.exit(main())
