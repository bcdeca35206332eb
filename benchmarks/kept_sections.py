"""How a benchmark of several sections runs: each is kept as it ends, and one alone can be run again."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.figures import Section, markdown
from benchmarks.machine import describe, load
from benchmarks.report_file import load_report, save_report, say

B = TypeVar("B")


def report_sections(
    name: str,
    options: argparse.Namespace,
    sections: Mapping[str, Callable[[B], Section]],
    prepare: Callable[[], AbstractContextManager[B]],
    *,
    about: str,
) -> int:
    """Run the chosen sections, keep and print the report of all; 0 if the requirements of all are met.

    `--only` chooses; otherwise those that the report lacks are run. `prepare` gives what sections work with,
    and is not called where there is nothing to run. The file is build/benchmarks/<name>.json, and the same
    in Markdown, unless `--out` names another. `about` is a line of the report.
    """
    out: Path = options.out or Path(f"build/benchmarks/{name}.json")
    report: dict[str, Any] = load_report(out) or {"sections": {}}
    report |= {"machine": describe(options.work), "documents": options.documents}
    chosen = options.only or [one for one in sections if one not in report["sections"]]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers end and space is freed
    if chosen:
        with prepare() as bench:
            for one in chosen:
                say(f"{one} ...")
                before = load()
                made = sections[one](bench).to_dict()
                at = datetime.now(UTC).isoformat(timespec="minutes")
                report["sections"][one] = {**made, "at": at, "load": [before, load()]}
                save_report(out, report)
    lines = [f"- {what}: {said}" for what, said in report["machine"].items()]
    lines += [f"- {about}", ""]
    for section in report["sections"].values():
        before, after = section["load"]
        lines += [*markdown(section), f"Load of the machine {before} before, {after} after.", ""]
    out.with_suffix(".md").write_text("\n".join(lines))
    print(json.dumps(report, indent=1) if options.json else "\n".join(lines))
    held = [one for section in report["sections"].values() for one in section["requirements"]]
    return int(any(one["verdict"] == "FAIL" for one in held))
