"""Time commands as a user meets them: whole processes, from the shell to the last line.

python -m benchmarks.commands                   a store of 1,000 snapshots in a folder
python -m benchmarks.commands --backend s3      on a SeaweedFS server of its own
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Section, markdown
from benchmarks.machine import describe, load
from benchmarks.places import open_place
from store import Element, Store

_ELEMENTS = 64
_ALWAYS = 40
_PROGRAM = "import sys; from flows.cli import main; sys.exit(main())"


def make_snapshots(url: str, count: int) -> None:
    """Pin `count` different sets of a few small elements at `url`."""
    store = Store.create(url)
    elements = [
        Element("memory", f"doc-{number:02d}", b"text", media="text/plain", provenance={"number": number})
        for number in range(_ELEMENTS)
    ]
    refs = store.publish(elements, message="Publish elements")
    free = _ELEMENTS - _ALWAYS
    for number in range(1, count + 1):
        chosen = [ref for place, ref in enumerate(refs) if place >= free or number >> place & 1]
        store.pin(chosen, message=f"Pin set {number}")


def seconds(*arguments: str) -> float:
    """Seconds of one command in a process of its own; raises CalledProcessError if it fails."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", _PROGRAM, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> int:
    """Measure, print JSON or Markdown; 0 if both thresholds are met."""
    options = _options()
    section = Section(f"Commands, {options.snapshots:,} snapshots, {options.backend}")
    before = load()
    root = Path(tempfile.mkdtemp(prefix="cellar-benchmark-", dir=options.work))
    try:
        with open_place(options.backend, root) as place:
            os.environ.update(place.environment)
            url = place.fresh()
            make_snapshots(url, options.snapshots)
            for _ in range(options.runs):
                section.figure("cellar --help", "s").add(seconds("--help"))
                section.figure("cellar snapshot ls", "s").add(seconds("--store", url, "snapshot", "ls"))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    for figure, most in zip(section.figures, (0.3, 1.0), strict=True):
        section.require(figure.name, figure.median, "s", most=most)
    section.notes.append(f"load of the machine {before} before, {load()} after")
    report = {"machine": describe(options.work), **section.to_dict()}
    print(json.dumps(report, indent=1) if options.json else "\n".join(markdown(report)))
    return int(any(one.verdict == "FAIL" for one in section.requirements))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time commands as whole processes.")
    parser.add_argument("--backend", choices=("s3", "file"), default="file")
    parser.add_argument("--snapshots", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=7, help="runs of which the median counts (default: 7)")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()), help="scratch space")
    parser.add_argument("--json", action="store_true", help="print the JSON, not the Markdown")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
