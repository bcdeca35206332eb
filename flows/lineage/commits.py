"""How a commit is told in a lineage, and the references in what was recorded."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from store import Commit, Row, Store
from store.format import is_digest

_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def commit_record(commit: Commit) -> dict[str, Any]:
    """When, by whom, by which flow, with which settings and code something was committed."""
    run = dict(commit.run)
    by = "{user}@{host}".format_map(run) if {"user", "host"} <= run.keys() else None
    return {
        "commit": commit.sequence,
        "time": commit.time,
        "message": commit.message,
        "by": by,
        "code": {name: run[name] for name in ("version", "revision") if name in run},
        "run": {name: run[name] for name in run.keys() - {"user", "host", "version", "revision"}},
    }


def commit_of(store: Store, row: Row) -> Commit:
    """The commit that published a row."""
    return store.history.at(row.commit)


def mentioned(values: Any) -> set[str]:
    """Every digest in a record, at any depth, alone or as part of a reference."""
    return {digest for text in _texts(values) for digest in _DIGEST.findall(text)}


def roles(values: Mapping[str, Any]) -> dict[str, str]:
    """What each digest in a record is, by the record's own names: `codec`, `corpus`, ..."""
    return {digest: name for name, value in values.items() for digest in mentioned(value)}


def digests_in(text: str) -> list[str]:
    """Every digest in the JSON text of a record."""
    return _DIGEST.findall(text)


def _texts(values: Any) -> Iterator[str]:
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from _texts(value)
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _texts(value)


def is_snapshot_id(text: object) -> bool:
    """Whether a value of a record can be the id of a snapshot."""
    return isinstance(text, str) and is_digest(text)
