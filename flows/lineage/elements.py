"""Lineage of one element: its document, what it was made from, and everything that was made with it."""

from collections.abc import Iterable, Mapping
from typing import Any

from flows.lineage.commits import commit_of, commit_record, digests_in, is_snapshot_id, mentioned, roles
from flows.lineage.holders import evaluations_of, holders_of
from flows.provenance.inputs import corpus_reports
from store import Ref, Row, Store
from tasks.corpus import load_shard, shard_of
from tasks.corpus.step import result_of
from tasks.errors import BadPayload
from tasks.progress import Progress, silent

FOR_EVER = 1_000
"""Steps of a lineage that has no bound."""
_READ = ("name", "version", "commit", "requires", "provenance")


def element_lineage(
    store: Store,
    row: Row,
    *,
    up: bool = True,
    down: bool = True,
    depth: int | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """What an element was made from (`up`) and what was made with it (`down`), `depth` steps far.

    Payloads are not read, but for the one shard that held a memory's document. `progress` counts rows and
    snapshots looked at.
    """
    found = _described(store, row)
    if row.kind == "memory":
        found["document"] = _document(store, row)
    if up:
        found["made_from"] = _inputs_of(store, row, depth or FOR_EVER, {row.version})
    if down:
        levels = _made_with(store, row, depth or FOR_EVER, progress)
        snapshots = holders_of(store, row, progress)
        known = {ref for level in levels for ref in level}
        others = [entry for entry in evaluations_of(store, snapshots) if entry["evaluation"] not in known]
        found["made_with"] = {"elements": levels, "snapshots": snapshots, "evaluations": others}
    return found


def _described(store: Store, row: Row) -> dict[str, Any]:
    """What is recorded of one element itself."""
    commit = commit_of(store, row)
    params = row.provenance.get("params", commit.run.get("params"))
    return {
        "element": str(row.ref),
        "bytes": row.length,
        "payload": row.digest,
        "recipe": row.recipe,
        "params": params,
        "made": commit_record(commit),
    }


def made_from(store: Store, named: Mapping[str, str], depth: int, seen: set[str]) -> list[dict[str, Any]]:
    """The elements behind versions that a record names in certain roles, with what they were made from.

    What is in `seen` was described already and comes as a reference alone.
    """
    inputs = store.catalog().get_all(named)
    found: list[dict[str, Any]] = []
    for source in sorted(inputs.values(), key=lambda source: (named[source.version], source.name)):
        entry: dict[str, Any] = {"role": named[source.version]}
        if source.version in seen:
            entry |= {"element": str(source.ref), "above": True}
        else:
            seen.add(source.version)
            entry |= _described(store, source)
            if depth > 1:
                entry["made_from"] = _inputs_of(store, source, depth - 1, seen)
        found.append(entry)
    return found


def _inputs_of(store: Store, row: Row, depth: int, seen: set[str]) -> list[dict[str, Any]]:
    """The elements and the snapshot that an element requires, or that its records name."""
    run = commit_of(store, row).run
    found = made_from(store, _named(row, run), depth, seen)
    snapshot = row.provenance.get("snapshot", run.get("snapshot"))
    return [*found, {"role": "snapshot", "snapshot": snapshot}] if is_snapshot_id(snapshot) else found


def sources_of(store: Store, row: Row) -> list[Row]:
    """The elements that an element requires, or that its records name."""
    named = _named(row, commit_of(store, row).run)
    return sorted(store.catalog().get_all(named).values(), key=lambda source: source.name)


def _named(row: Row, run: Mapping[str, Any]) -> dict[str, str]:
    """The versions that an element requires or that its records name, with their roles."""
    named = {**roles({"inputs": run.get("inputs", [])}), **roles(row.provenance)}
    return named | {version: named.get(version, "requires") for version in row.requires}


def _made_with(store: Store, row: Row, depth: int, progress: Progress) -> list[list[str]]:
    """References of what requires an element or names it in its records; then what does so with these."""
    catalog, inputs = store.catalog(), _inputs_by_commit(store)
    total, done = len(catalog), 0
    levels: list[list[str]] = []
    seen, fresh = {row.version}, {row.version}
    while fresh and len(levels) < depth:
        told = {sequence for sequence, named in inputs.items() if not fresh.isdisjoint(named)}
        level: dict[str, str] = {}
        for table in catalog.scan(_READ):
            columns = (table[name].to_pylist() for name in _READ)
            for name, version, commit, requires, provenance in zip(*columns, strict=True):
                if version not in seen and (
                    commit in told
                    or not fresh.isdisjoint(requires)
                    or not fresh.isdisjoint(digests_in(provenance))
                ):
                    level[version] = f"{name}@{version}"
            done += len(table)
            progress(done, max(total, done))
        if level:
            levels.append(sorted(level.values()))
        seen |= level.keys()
        fresh = set(level)
    return levels


def _inputs_by_commit(store: Store) -> dict[int, set[str]]:
    """What commits name as the inputs of all that they published, by their numbers."""
    named = ((commit.sequence, mentioned(commit.run.get("inputs", []))) for commit in store.log())
    return {sequence: digests for sequence, digests in named if digests}


def _document(store: Store, row: Row) -> dict[str, Any]:
    """The document of a memory: its digest, where it was read, and the shard and corpora that hold it.

    The shard follows from the name; that it holds the document is looked up in it.
    """
    digest, name = row.provenance.get("document"), row.name.partition("/")[2]
    found: dict[str, Any] = {"digest": digest, "name": name, "source": row.facts.get("source")}
    corpora = [(report, _shard_of(store, report, name)) for report in corpus_reports(store)]
    for shard in _distinct(shard for _, shard in corpora if shard is not None):
        documents = load_shard(store.read(shard))
        if any((held.name, held.digest) == (name, digest) for held in documents):
            reports = [str(report.ref) for report, other in corpora if other == shard]
            return {**found, "shard": str(shard), "corpora": reports}
    return found


def _shard_of(store: Store, report: Row, name: str) -> Ref | None:
    """The shard of a corpus that would hold a document of that name; None for a report that is none."""
    try:
        shards = result_of(report.ref, store.read(report), reused=True).shards
    except BadPayload:
        return None
    number = shard_of(name, len(shards)) if shards else 0
    return shards[number] if shards else None


def _distinct(refs: Iterable[Ref]) -> list[Ref]:
    return list(dict.fromkeys(refs))
