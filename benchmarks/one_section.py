"""How a benchmark of one section runs: scratch folder, load before and after, report as JSON and Markdown."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figures import Section, markdown
from benchmarks.machine import describe, load
from benchmarks.report_file import save_report

Found = dict[str, Any]


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Where it works, what it writes and what it prints."""
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()), help="scratch space")
    parser.add_argument("--out", type=Path, help="the JSON file (default: build/benchmarks/...)")
    parser.add_argument("--json", action="store_true", help="print the JSON, not the Markdown")


def report_section(
    name: str, options: argparse.Namespace, run: Callable[[Path], tuple[Section, Found]]
) -> int:
    """Run in a folder that is removed afterwards, keep and print the report; 0 if all requirements are met.

    `run` gives the section and what the report keeps beside it. The file is build/benchmarks/<name>.json,
    and the same in Markdown, unless `--out` names another.
    """
    out: Path = options.out or Path(f"build/benchmarks/{name}.json")
    if out.is_dir():
        raise SystemExit(f"--out {out} is a folder; give the name of a file")
    root = Path(tempfile.mkdtemp(prefix="cellar-benchmark-", dir=options.work))
    before = load()
    try:
        section, found = run(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    after = load()
    shown = section.to_dict()
    report = {"machine": describe(options.work), "load": [before, after], "section": shown, **found}
    lines = [f"- {what}: {said}" for what, said in report["machine"].items()]
    lines += [f"- load {before} before, {after} after", "", *markdown(shown)]
    save_report(out, report)
    out.with_suffix(".md").write_text("\n".join(lines))
    print(json.dumps(report, indent=1) if options.json else "\n".join(lines))
    return int(any(one["verdict"] == "FAIL" for one in shown["requirements"]))
