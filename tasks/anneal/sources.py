"""Which texts a consolidation stands on, and what they are: no host is needed to say so."""

from collections.abc import Callable

from store import Store
from tasks.anneal.params import AnnealParams
from tasks.errors import BadCorpus
from tasks.shadows import ShadowParams, TextSource, digest_of, read_documents


def retention_sources(anneal: AnnealParams) -> tuple[TextSource, ...]:
    """Where the texts lie on which the host must not get worse; raises `BadCorpus` where none is named."""
    if not anneal.retention:
        raise BadCorpus(
            "no text is named on which the host must not get worse; set anneal.retention, e.g. "
            '\'anneal.retention=[{"corpus": "docs"}]\''
        )
    return anneal.retention


def retention_digests(
    store: Store, anneal: AnnealParams, *, told: Callable[[str], None] | None = None
) -> tuple[str, ...]:
    """The digests of the retention texts; raises and tells as `read_documents`, and where none is named."""
    sources = retention_sources(anneal)
    return tuple(digest_of(read_documents(store, source, told=told)) for source in sources)


def text_digests(
    store: Store, shadow: ShadowParams, anneal: AnnealParams, *, told: Callable[[str], None] | None = None
) -> tuple[str, ...]:
    """The digests of domain and retention texts, which are all that fingerprints know of them; raises so."""
    retention_sources(anneal)  # said before a large domain is read
    domain = read_documents(store, shadow.domain, told=told)
    return (digest_of(domain), *retention_digests(store, anneal, told=told))
