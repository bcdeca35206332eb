"""What a run of a flow writes on itself: its process, its store, and the snapshot that came out.

All are labels of the flow run, so that whoever reads runs from the API finds them without a store at hand.
"""

import json
import logging
import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flows.errors import SettingsError
from store import process

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas import FlowRun, State

_LOG = logging.getLogger(__name__)

PROCESS = "cellar.process"
STORE = "cellar.store"
SNAPSHOT = "cellar.snapshot"
AGAIN = "cellar.again"
"""The run that was started because this one broke off."""
REFUSED = "cellar.refused"
"""Why no run could be started though this one broke off."""
ATTEMPT = "cellar.attempt"
"""How many runs broke off before this one, which does the same work."""


def record_process(flow: "Flow[..., Any]", flow_run: "FlowRun", state: "State[Any]") -> None:
    """Hook of a run that begins: note its process, so that a dead one is recognised, and its store."""
    noted = {PROCESS: json.dumps({**(process.identity() or {}), "host": platform.node()})}
    store = store_of(flow_run.parameters)
    _label(flow_run, noted if store is None else {**noted, STORE: store})


def store_of(parameters: Mapping[str, Any]) -> str | None:
    """The store that a flow of this process works with: that of its settings, or of the process."""
    from flows.settings import load_settings

    given = parameters.get("settings")
    named = given.get("store") if isinstance(given, Mapping) else getattr(given, "store", None)
    try:
        return str(named or load_settings().store)
    except SettingsError:
        return None


def process_of(flow_run: "FlowRun") -> dict[str, Any] | None:
    """The identity of the process that runs it, and its machine's name; None where none is noted."""
    try:
        noted = json.loads(str(flow_run.labels[PROCESS]))
    except (KeyError, ValueError):
        return None
    return noted if isinstance(noted, dict) else None


def notes_its_process(flow: "Flow[..., Any]") -> bool:
    """Whether runs of a flow say which process runs them."""
    return record_process in flow.on_running_hooks


def record_snapshot(flow: "Flow[..., Any]", flow_run: "FlowRun", state: "State[Any]") -> None:
    """Hook of a run that completed: note the snapshot in its result, if there is one."""
    snapshot = snapshot_in(state.result(raise_on_failure=False))
    if snapshot is not None:
        _label(flow_run, {SNAPSHOT: snapshot})


def snapshot_in(result: object) -> str | None:
    """The id of the snapshot that a flow returned: as the field `snapshot`, or as the pin of that stage."""
    found = result.get("snapshot") if isinstance(result, dict) else getattr(result, "snapshot", None)
    if found is None and isinstance(result, dict) and isinstance(result.get("pins"), dict):
        return snapshot_in(result["pins"].get("snapshot"))
    return found if isinstance(found, str) else None


def _label(flow_run: "FlowRun", labels: dict[str, Any]) -> None:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        client.update_flow_run_labels(flow_run.id, labels)
