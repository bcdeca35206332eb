"""The command that brings the memories of a head up to date with their source."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from flows.cli.launch import Flag, Injected, ParamsFile, Set, orchestration
from flows.formatting import columns, counted

if TYPE_CHECKING:
    from store import Store

_FEW = 10
_SIGNS = {"added": "+", "replaced": "~", "retired": "-"}
Several = Parameter(negative="", consume_multiple=False)


def update(
    *,
    head: str | None = None,
    partition: Annotated[list[str] | None, Several] = None,
    drop_partition: Annotated[list[str] | None, Several] = None,
    skip_missing: Annotated[bool, Flag] = False,
    shards: str | None = None,
    at: str | None = None,
    wait: timedelta = timedelta(0),
    retrain: Annotated[bool, Flag] = False,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Bring a head up to date with its source: build what is new or changed, leave out what is gone.

    Tokenizer, codec and reranker stay those of the head's snapshot. A head that is new starts with all of the
    chain up to the snapshot. One run at a time works on a head.

    Parameters
    ----------
    head
        The head to move; otherwise the one with the name of the corpus.
    partition
        Update only this partition, where corpus.path holds {partition}: a name, a date, a range
        first..last of days or months, today or yesterday, or several with commas; may be repeated.
    drop_partition
        Leave out everything that this partition holds; written and repeated like --partition.
    skip_missing
        Pass over partitions that have no file.
    shards
        Update only the documents of these worker shards, as in 1,3..9.
    at
        The moment that today and yesterday are seen from, as in 2026-11-30T02:00:00+01:00; otherwise now.
    wait
        Wait so long, as in 10m, for another run on the same head.
    retrain
        Train tokenizer, codec and reranker anew, and build every memory with them.
    """
    from flows.params import load_params
    from flows.updating.partitions import moment
    from flows.updating.scope import Scope

    chosen = load_params(params, set_ or ())
    when = moment(at)
    scope = Scope.of(  # what is wrong with what was asked for is said before anything is started
        chosen,
        partitions=partition or (),
        dropped=drop_partition or (),
        shards=shards,
        skip_missing=skip_missing,
        at=when,
    )
    name = head or chosen.corpus.name

    def check(store: "Store") -> None:
        from flows.updating.head_state import HeadState

        base = HeadState.read(store, name)
        base.check_source(chosen)
        scope.check(base, chosen.corpus.name)

    with orchestration(session, session.settings, check=check) as settings:
        from flows.update_memories import update_memories

        result: dict[str, Any] = update_memories(
            chosen,
            settings,
            name,
            partitions=partition,
            shards=shards,
            drop_partitions=drop_partition,
            skip_missing=skip_missing,
            retrain=retrain,
            wait_s=wait.total_seconds(),
            at=when.isoformat(),
        )
    for notice in result["notices"]:
        session.warn(notice)
    session.emit(result, _lines(result))


def _lines(result: dict[str, Any]) -> Iterator[str]:
    """What changed, for people: the first names of each kind, then the counts and the snapshot."""
    for what, sign in _SIGNS.items():
        names = result["names"][what]
        yield from (f"{sign} {name}" for name in names[:_FEW])
        if result[what] > _FEW:
            yield f"{sign} ... {result[what] - _FEW:,} more"
    rejected = result["rejected"]
    yield from (
        f"! {r['document']}  rejected: token recall {r['token_recall']:.4f}, loss {r['loss']:.4f}"
        for r in rejected[:_FEW]
    )
    skipped = result["skipped"]
    yield from (f"! {one['document']}  skipped: {one['reason']}" for one in skipped["documents"][:_FEW])
    if skipped["count"] > _FEW:
        yield f"! ... {skipped['count'] - _FEW:,} more skipped"
    if result["missing"]:
        yield f"without a file: {', '.join(result['missing'])}"
    counts = [(what, result[what]) for what in (*_SIGNS, "kept")]
    unread = [("skipped", skipped["count"])] if skipped["count"] else []
    yield from columns([*counts, ("rejected", result["figures"]["rejected"]), *unread])
    if result["moved"]:
        yield f"head {result['head']}: {(result['previous'] or 'new')[:12]} -> {result['snapshot']}"
    else:
        yield f"nothing changed; head {result['head']} stays at {result['snapshot']}"
    yield f"{counted(result['worked'], 'document')} computed"
