"""What a snapshot was made from and is evaluated with, found in the store: no pin file says so.

Whoever pins memories of known corpora records the reports of these (see `flows.provenance.corpora`). For
other snapshots the corpora are found by the digests of their documents.
"""

from collections.abc import Iterable

from flows.provenance.corpora import recorded_corpora
from store import Ref, Row, Snapshot, Store
from store.errors import ElementNotFound
from store.selection import choose
from tasks.assembly.params import AssemblyParams
from tasks.corpus import is_worker_shard, load_shard
from tasks.corpus.step import result_of
from tasks.errors import StaleInputs, TooLittleText


def corpora_of(store: Store, snapshot: Snapshot) -> list[Ref]:
    """The reports of the corpora that hold the documents of a snapshot's memories, newest first.

    The commit that pinned the snapshot says which; otherwise they are those, from the newest on, whose odd
    shards hold documents that no newer one holds.

    Raises `TooLittleText` if no corpus of the store holds some of the documents.
    """
    catalog = store.catalog()
    named = recorded_corpora(store, snapshot.id)
    if named and len(catalog.get_all(ref.version for ref in named)) == len(named):
        return named
    missing = {row.name: row.provenance.get("document") for row in snapshot.rows("memory")}
    found: list[Ref] = []
    for report in corpus_reports(store):
        held = _documents(store, shards_of(store, [report.ref]), missing)
        if held:
            found.append(report.ref)
            missing = {name: digest for name, digest in missing.items() if name not in held}
        if not missing:
            return found
    raise TooLittleText(
        f"no corpus in {store.url} holds the documents of {len(missing):,} memories of snapshot "
        f"{snapshot.id[:12]}, the first {min(missing)}; ingest what they were built from again"
    )


def corpus_reports(store: Store) -> list[Row]:
    """The reports of all ingested corpora, newest first."""
    rows = [row for row in store.catalog().rows("corpus") if row.name.endswith("/report")]
    return sorted(rows, key=lambda row: (row.commit, row.name), reverse=True)


def shards_of(store: Store, reports: Iterable[Ref]) -> list[Ref]:
    """The shards of some corpora, each once; of language shards with one name those of the first corpus."""
    found: dict[str, Ref] = {}
    for report in reports:
        for shard in result_of(report, store.read(report), reused=True).shards:
            found.setdefault(str(shard) if is_worker_shard(shard) else shard.name, shard)
    return sorted(found.values())


def core_of(store: Store, snapshot: Snapshot, params: AssemblyParams) -> Ref | None:
    """The newest core of these parameters that reads the snapshot's codec, None if there is none yet.

    Snapshots of one codec share a core, so that their evaluations differ by the evidence alone.
    """
    codec = snapshot.one("codec").version
    wanted = params.model_dump(mode="json")
    for row in reversed(store.catalog().versions(f"core/{params.name}")):
        if codec in row.requires and row.provenance.get("params") == wanted:
            return row.ref
    return None


def named_core(store: Store, snapshot: Snapshot, name: str) -> Ref:
    """The core that somebody names, `core/<name>` or `core/<name>@version`.

    Raises `ElementNotFound` if there is none, `StaleInputs` if it reads another codec than the snapshot's.
    """
    try:
        found = choose(store.catalog(), [name])
    except ElementNotFound as error:
        raise ElementNotFound(
            f"there is no core {name!r} in {store.url}; name one as core/NAME, `cellar log` says what was "
            "published"
        ) from error
    rows = [row for row in found if row.kind == "core"]
    if not rows:
        raise ElementNotFound(f"{name} is no core; name one as core/NAME")
    if len(rows) > 1:
        raise ElementNotFound(f"{name} fits {len(rows)} cores; name one of them, e.g. {rows[0].name}")
    codec = snapshot.one("codec")
    if codec.version not in rows[0].requires:
        raise StaleInputs(
            f"{rows[0].name}@{rows[0].version[:12]} was not trained for {codec.name}@{codec.version[:12]}, "
            f"which snapshot {snapshot.id[:12]} holds; name another core, or none to train one"
        )
    return rows[0].ref


def _documents(store: Store, shards: Iterable[Ref], wanted: dict[str, str | None]) -> set[str]:
    """Those memories whose documents lie in the odd ones of some shards; a digest of None is any text."""
    return {
        name
        for shard in shards
        if is_worker_shard(shard)
        for document in load_shard(store.read(shard))
        if (name := f"memory/{document.name}") in wanted and wanted[name] in (None, document.digest)
    }
