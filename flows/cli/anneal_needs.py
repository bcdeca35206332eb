"""What commands that learn texts need of a store and of files, said before anything is started."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from flows.params import Params
    from store import Store


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


def _need_host(store: "Store", params: "Params") -> None:
    """The host and the shadows that it has learned before; raises `UnknownHost` and as `stack_refs`."""
    from flows.hosts import host_ref

    host_ref(store, params.host)
    if params.shadow.onto:
        from tasks.shadows import stack_refs

        stack_refs(store, params.shadow.onto)
