"""What strings are drawn from and told apart by: known before a host or an index is opened."""

from collections.abc import Callable, Collection, Sequence

from store import Ref, Snapshot, Store
from tasks.corpus import Document
from tasks.errors import StaleInputs, TooLittleText
from tasks.shadows import TextSource, digest_of, read_documents


def check_learned(documents: Sequence[Document], written: Collection[str | None]) -> None:
    """Raise `StaleInputs` where documents, by which strings are told apart, are no text that shadows learned.

    `written` are the digests of the texts that the shadows were written from. No document is no text.
    """
    if documents and digest_of(documents) not in written:
        raise StaleInputs(
            "shadow.domain is not the text that a named shadow was written from; name the one it was, or "
            "leave shadow.domain out"
        )


def check_sources(
    store: Store,
    refs: Sequence[Ref],
    source: TextSource,
    snapshot: Snapshot,
    *,
    told: Callable[[str], None] | None = None,
) -> None:
    """Raise what an evaluation would of its text and its snapshot, by what is recorded of them.

    Raises as `check_learned` and `read_documents`, which tells `told`, and `TooLittleText` for a snapshot
    with fewer than two memories.
    """
    documents = read_documents(store, source, told=told) if source.given else []
    rows = store.catalog().get_all(ref.version for ref in refs)
    check_learned(documents, [row.provenance.get("document") for row in rows.values()])
    memories = snapshot.kinds.get("memory", 0)
    if memories < 2:
        raise TooLittleText(
            f"snapshot {snapshot.id[:12]} holds {memories} of the two or more memories that strings are "
            "drawn from; build more memories, or name another snapshot"
        )
