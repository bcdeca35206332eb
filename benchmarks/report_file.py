"""The JSON file that a benchmark keeps what it found in, so that it can be continued; and what it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def load_report(path: Path) -> dict[str, Any] | None:
    """What an earlier run found, None without one."""
    if not path.exists():
        return None
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def save_report(path: Path, report: dict[str, Any]) -> None:
    """Put a report in its place in one go, making the folder where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(report, indent=1))
    partial.replace(path)


def say(line: str) -> None:
    """Tell who waits how far it is; the report itself goes to stdout."""
    print(line, file=sys.stderr, flush=True)
