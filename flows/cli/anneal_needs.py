"""What commands that learn texts need of a store and of files, said before anything is started."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flows.params import Params
    from store import Ref, Snapshot, Store


def need_domain(store: "Store", params: "Params", told: "Callable[[str], None]") -> None:
    """The host, what is learned before, and the text: raises what writing would, `UnknownHost` first.

    `told` is told in a sentence of files that are left out.
    """
    from tasks.shadows import read_documents

    _need_host(store, params)
    read_documents(store, params.shadow.domain, told=told)


def need_texts(store: "Store", params: "Params", told: "Callable[[str], None]") -> None:
    """As `need_domain`, and the texts on which the host must not get worse."""
    from tasks.anneal import text_digests

    _need_host(store, params)
    text_digests(store, params.shadow, params.anneal, told=told)


def need_domains(store: "Store", params: "Params", told: "Callable[[str], None]") -> None:
    """As `need_texts`, for all domains that are learned one after another."""
    from tasks.anneal import retention_digests
    from tasks.shadows import read_documents

    _need_host(store, params)
    retention_digests(store, params.anneal, told=told)
    for source in params.anneal.domains.values():
        read_documents(store, source, told=told)


def need_facts(store: "Store", params: "Params", told: "Callable[[str], None]") -> None:
    """The host, what is learned before, facts that can be made up, and retention text."""
    from tasks.anneal import retention_digests
    from tasks.facts import made_up_facts

    _need_host(store, params)
    made_up_facts(params.facts)
    retention_digests(store, params.anneal, told=told)


def need_shadows(store: "Store", params: "Params", names: "Sequence[str]") -> "tuple[Ref, tuple[Ref, ...]]":
    """The host and the named shadows, which must be of it; raises as `stack_refs` and `check_written_on`."""
    from flows.hosts import host_ref
    from tasks.shadows import check_written_on, stack_refs

    host, refs = host_ref(store, params.host), stack_refs(store, names)
    check_written_on(store, refs, host)
    return host, refs


def need_composition(
    store: "Store",
    params: "Params",
    names: "Sequence[str]",
    snapshot: "Snapshot",
    told: "Callable[[str], None]",
) -> None:
    """Host, shadows, the text by which strings are told apart, and the documents of a snapshot's memories."""
    from flows.provenance.evidence import check_indexed
    from flows.provenance.inputs import corpora_of
    from tasks.composition import check_sources

    _, refs = need_shadows(store, params, names)
    check_indexed(snapshot)
    check_sources(store, refs, params.shadow.domain, snapshot, told=told)
    corpora_of(store, snapshot)


def _need_host(store: "Store", params: "Params") -> None:
    """The host and the shadows that it has learned before; raises `UnknownHost` and as `need_shadows`."""
    need_shadows(store, params, params.shadow.onto)
