"""Flow `audit-evaluation`: what an evaluation's documents share with the text that training saw."""

from typing import Any

from flows.engine import bind, flow
from flows.held import held_at_work
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.provenance.inputs import corpora_of, shards_of
from flows.settings import Settings
from store import Ref
from store.errors import ElementNotFound
from tasks.audit.params import AuditParams


def _audit(settings: Settings, params: AuditParams, evaluation: str) -> dict[str, Any]:
    from tasks.audit.step import audit_evaluation as audit

    prepare_threads(settings)
    store = open_store(settings)
    ref = Ref.parse(evaluation)
    row = store.catalog().get(ref.version)
    if row is None:
        raise ElementNotFound(f"{store.url} has no {ref}; run `cellar eval run` first")
    snapshot = store.snapshot(str(row.provenance.get("snapshot")))
    with held_at_work(
        store, snapshot.id, purpose="audit", title="audit evaluation", unit="percent"
    ) as progress:
        shards = shards_of(store, corpora_of(store, snapshot))
        result = audit(store, params, evaluation=ref, corpus=shards, progress=progress)
    return {"evaluation": evaluation, "audit": str(result.summary_ref), "reused": result.reused}


audit_task = bind(_audit, name="audit evaluation")


def _flow(params: Params, settings: Settings, evaluation: str) -> dict[str, Any]:
    """Audit an evaluation of attachments, given by its reference; the store says what it was made from.

    Returns the references of `evaluation` and `audit`, and whether the audit was `reused`.
    """
    return audit_task(settings, params.audit, evaluation)


audit_evaluation = flow(_flow, name="audit-evaluation")
