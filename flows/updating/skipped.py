"""What an update could not read at its source, from the reports of the corpora that it read."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tasks.corpus import CorpusReport


def skipped(reports: Iterable[CorpusReport], most: int) -> dict[str, Any]:
    """Skipped documents as a record: how many, how many for each reason, and the first `most` by name."""
    read = list(reports)
    reasons: Counter[str] = Counter()
    for report in read:
        reasons.update(report.reasons)
    listed = [
        {"document": entry["name"], "reason": entry["reason"]} for report in read for entry in report.listed
    ]
    return {
        "count": sum(report.skipped for report in read),
        "reasons": dict(sorted(reasons.items())),
        "documents": listed[:most],
    }
