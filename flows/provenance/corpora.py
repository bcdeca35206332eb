"""Which corpora a snapshot was made from, as the commit that pinned it says: no pin file is needed for it."""

import re
from collections.abc import Iterable
from typing import Any

from store import Ref, Store
from store.errors import InvalidName

CORPUS = "corpus"
"""Key of a run record that lists the reports of corpora."""
_NAME = re.compile(r"corpus/[^/]+/report")


def made_from(reports: Iterable[Ref]) -> dict[str, Any]:
    """What the commit of a pin records of the corpora: their reports, which name the shards.

    A corpus in partitions has a report for each of them.
    """
    named = sorted({str(report) for report in reports})
    return {CORPUS: named} if named else {}


def corpus_name(report: Ref) -> str:
    """The name of a corpus, from the reference of its report `corpus/<name>/report`."""
    return report.name.split("/")[1]


def recorded_corpora(store: Store, snapshot: str) -> list[Ref]:
    """The reports that the pin of a snapshot (by its full id) records, by name; they may be gone by now.

    Empty where it does not say: a set that was chosen by hand, or pinned by a version or a program that
    records something else there. A set that was pinned before is not pinned again, so this is what it was
    made from the first time.
    """
    store.tip()
    commit = store.history.last_pin(snapshot)
    recorded = commit.run.get(CORPUS) if commit is not None else None
    found = [_report(text) for text in recorded] if isinstance(recorded, list) else []
    known = [report for report in found if report is not None]
    return known if len(known) == len(found) else []


def _report(text: object) -> Ref | None:
    """The reference of a report, None for anything else."""
    try:
        ref = Ref.parse(text) if isinstance(text, str) else None
    except InvalidName:
        return None
    return ref if ref is not None and _NAME.fullmatch(ref.name) else None
