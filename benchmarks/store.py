"""Compare the store with its peers on the machine at hand; every peer is measured in the same run.

    python -m benchmarks.store                      5,000 elements, on a SeaweedFS server of its own
    python -m benchmarks.store --backend file       in a folder
    python -m benchmarks.store --full               52,809 elements, and all sizes of the index
    python -m benchmarks.store --only read,lookup   these sections, again; the others stay as they were

Sections are kept in one JSON file as they end, so a run that was interrupted goes on where it stopped. What
lies in the way of a good figure is printed with it: the load of the machine before and after, and how long
the file system takes to make a file. On ext4 that is ten times as long for some minutes after many files were
deleted, as at the end of this benchmark.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.figures import markdown
from benchmarks.machine import describe, load, new_file_us
from benchmarks.places import open_place
from benchmarks.report_file import load_report, save_report, say
from benchmarks.sections import REFERENCE, SECTIONS, Bench


def main() -> int:
    """Run the sections that the command line asks for; 0 if all thresholds of all sections are met."""
    options = _options()
    out: Path = options.out or Path(f"build/benchmarks/store-{options.backend}-{options.n}.json")
    report = load_report(out) or {"settings": _settings(options), "sections": {}}
    report["machine"] = describe(options.work)
    chosen = options.only or [name for name in SECTIONS if name not in report["sections"]]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server ends and the space is freed
    root = Path(tempfile.mkdtemp(prefix="cellar-benchmark-", dir=options.work))
    try:
        if chosen:
            with open_place(options.backend, root) as place:
                bench = Bench(place, options.backend, root, options.n, options.runs, options.full, say)
                for name in chosen:
                    say(f"{name} ...")
                    report["sections"][name] = _run(name, bench)
                    save_report(out, report)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    lines = _lines(report)
    out.with_suffix(".md").write_text("\n".join(lines))
    print(json.dumps(report, indent=1) if options.json else "\n".join(lines))
    say(f"wrote {out} and {out.with_suffix('.md')}")
    held = [one for section in report["sections"].values() for one in section["requirements"]]
    return int(any(one["verdict"] == "FAIL" for one in held))


def _run(name: str, bench: Bench) -> dict[str, Any]:
    before, files, began = load(), new_file_us(bench.work), time.perf_counter()
    section = SECTIONS[name](bench).to_dict()
    took = time.perf_counter() - began
    at = datetime.now(UTC).isoformat(timespec="minutes")
    return {**section, "at": at, "took_s": round(took, 1), "load": [before, load()], "new_file_us": files}


def _lines(report: dict[str, Any]) -> list[str]:
    lines = [f"- {what}: {said}" for what, said in report["machine"].items()]
    settings = report["settings"]
    lines += [f"- {settings['n']:,} elements of 64 KB, backend {settings['backend']}", ""]
    for name in SECTIONS:
        section = report["sections"].get(name)
        if section:
            lines += markdown(section)
            before, after = section["load"]
            lines += [
                f"Took {section['took_s']:.0f} s; load of the machine {before} before, {after} after; "
                f"a new file took {section.get('new_file_us', '?')} us before.",
                "",
            ]
    return lines


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("backend", "n", "full")}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare the store with its peers on this machine.")
    parser.add_argument("--backend", choices=("s3", "file"), default="s3")
    parser.add_argument("--n", type=int, default=5_000, help="elements of 64 KB (default: 5,000)")
    parser.add_argument("--full", action="store_true", help=f"{REFERENCE:,} elements and all index sizes")
    parser.add_argument("--runs", type=int, default=5, help="runs of which the median counts (default: 5)")
    parser.add_argument("--only", type=lambda text: text.split(","), help=f"of: {', '.join(SECTIONS)}")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()), help="scratch space")
    parser.add_argument("--out", type=Path, help="the JSON file (default: build/benchmarks/...)")
    parser.add_argument("--json", action="store_true", help="print the JSON, not the Markdown")
    options = parser.parse_args()
    if options.full:
        options.n = REFERENCE
    unknown = set(options.only or ()) - set(SECTIONS)
    if unknown:
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    if options.n < 20 or options.runs < 1:
        parser.error("at least 20 elements and one run are needed")
    return options


if __name__ == "__main__":
    sys.exit(main())
