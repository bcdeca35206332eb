"""What a run that ended well should still be looked at for: figures beyond the limits of the settings."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.runtime import flow_run

from flows.errors import SettingsError
from flows.formatting import counted
from flows.notices import notify
from flows.notices.notify import Notifications, load_notifications
from flows.settings import Settings

if TYPE_CHECKING:
    from store.verify import Finding

_LOG = logging.getLogger(__name__)

_BUILD_FIGURES = ("documents", "published", "rejected", "token_recall", "loss")
_RETRIEVAL_FIGURES = ("candidate_recall", "recall_at_1")


def tell_of_build(settings: Settings, snapshot: str | None, figures: Mapping[str, Any]) -> None:
    """Tell of a memory build that rejected too much, or whose memories read back badly. Never raises."""
    chosen = {name: figures[name] for name in _BUILD_FIGURES if name in figures}
    _tell(settings, snapshot, chosen, build_faults(chosen, _limits()))


def tell_of_evaluation(settings: Settings, snapshot: str | None, figures: Mapping[str, Any]) -> None:
    """Tell of an evaluation in which retrieval finds too little. Never raises."""
    shares = figures.get("retrieval", {})
    chosen = {name: shares[name] for name in _RETRIEVAL_FIGURES if name in shares}
    _tell(settings, snapshot, chosen, evaluation_faults(chosen, _limits()))


def tell_of_findings(store: str, findings: "Sequence[Finding]") -> None:
    """Tell what a verification found. Never raises."""
    if findings:
        flow, run = _outermost("verify")
        reasons = [f"{counted(len(findings), 'finding')} of verify", *(found.problem for found in findings)]
        touched = {snapshot for found in findings for snapshot in found.snapshots}
        notify.degraded(
            reasons,
            flow=flow,
            run=run,
            store=store,
            figures={"findings": len(findings), "snapshots": len(touched)},
        )


def build_faults(figures: Mapping[str, Any], limits: Notifications) -> list[str]:
    """What is wrong with the figures of a memory build, in words."""
    documents, rejected = figures.get("documents", 0), figures.get("rejected", 0)
    if not documents:  # nothing was read back, so that no share or recall says anything
        return []
    faults = []
    if rejected / documents > limits.rejected_share:
        faults.append(
            f"{rejected:,} of {documents:,} documents were rejected, a share of {rejected / documents:.4f} "
            f"above {limits.rejected_share:g}"
        )
    return faults + _low("token recall", figures.get("token_recall"), limits.recall)


def evaluation_faults(figures: Mapping[str, Any], limits: Notifications) -> list[str]:
    """What is wrong with the figures of an evaluation, in words."""
    return _low("recall at 1", figures.get("recall_at_1"), limits.recall)


def _low(name: str, value: float | None, least: float) -> list[str]:
    return [f"{name} {value:.4f} is below {least:g}"] if value is not None and value < least else []


def _limits() -> Notifications:
    """The limits of the environment; where these are in error `notify` says so."""
    try:
        return load_notifications()
    except SettingsError:
        return Notifications.model_construct()


def _tell(
    settings: Settings, snapshot: str | None, figures: Mapping[str, Any], reasons: Sequence[str]
) -> None:
    if not reasons:
        return
    flow, run = _outermost("unnamed flow")
    notify.degraded(
        reasons,
        flow=flow,
        run=run,
        store=settings.store,
        snapshot=snapshot,
        figures=figures,
    )


def _outermost(unnamed: str) -> tuple[str, str | None]:
    """Flow and run that a schedule or a command started, as `cellar runs` lists them."""
    flow, run = flow_run.flow_name or unnamed, flow_run.id
    try:
        outermost = flow_run.root_flow_run_id
        if outermost in (None, run):
            return flow, run
        with get_client(sync_client=True) as client:
            return client.read_flow(client.read_flow_run(UUID(outermost)).flow_id).name, outermost
    except Exception as error:  # noqa: BLE001 - a run never ends differently because of its message
        _LOG.warning("the run that %s %s is part of is not known: %s", flow, run, error)
        return flow, run
