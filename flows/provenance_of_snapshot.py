"""Which corpora a snapshot was made from: said in the commit that pinned it, found without any pin file."""

from collections.abc import Iterable
from typing import Any

from store import Ref, Store

_CORPUS = "corpus"


def made_from(reports: Iterable[Ref]) -> dict[str, Any]:
    """What the commit of a pin records of the corpora, given by their reports: `{"corpus": {name: report}}`.

    The reports name the shards; a pin does not repeat them. A corpus in partitions has a name for each.
    """
    named = {corpus_name(report): str(report) for report in reports}
    return {_CORPUS: dict(sorted(named.items()))} if named else {}


def corpus_name(report: Ref) -> str:
    """The name of a corpus, from the reference of its report `corpus/<name>/report`."""
    return report.name.split("/")[1]


def corpora_of(store: Store, snapshot: str) -> list[Ref]:
    """The reports of the corpora that a snapshot (by its full id) was made from, by name.

    Empty where the commit that pinned it does not say: a set that was chosen by hand, or pinned by a version
    that did not record it. A set that was pinned before is not pinned again, so this is what it was made from
    the first time.
    """
    store.tip()
    commit = store.history.last_pin(snapshot)
    recorded = commit.run.get(_CORPUS) if commit is not None else None
    if not isinstance(recorded, dict):
        return []
    return [Ref.parse(text) for _, text in sorted(recorded.items())]
