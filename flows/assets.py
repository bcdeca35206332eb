"""Lineage for who looks at Prefect: what a run made, as assets with what they were made from.

Prefect keeps assets as events only, and not for ever. They are a copy of the store's own records, which stay
(`cellar lineage`).
"""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flows.lineage.commits import mentioned
from flows.lineage.elements import sources_of
from flows.provenance.corpora import recorded_corpora
from flows.runs.labels import snapshot_in
from flows.settings import Settings
from store import Commit, Ref, Row, Snapshot, Store

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.assets import Asset
    from prefect.client.schemas import FlowRun, State

_LOG = logging.getLogger(__name__)

MADE_BY = "cellar"
_COUNTED = "memory"
"""A kind of which a run makes thousands: their snapshot stands for them."""


def record_assets(flow: "Flow[..., Any]", flow_run: "FlowRun", state: "State[Any]") -> None:
    """Hook of a run that completed: tell Prefect of the elements and the snapshot that this run made.

    What it found done was told of by the run that made it. A run whose assets cannot be told of is done all
    the same.
    """
    if "settings" not in flow_run.parameters:
        return
    try:
        settings = Settings.model_validate(flow_run.parameters["settings"])
        result = state.result(raise_on_failure=False)
        store = Store.open(settings.store)
        for asset, sources, facts in _made(store, result, str(flow_run.id)):
            _materialise(asset, sources, facts)
    except Exception as error:  # noqa: BLE001 - nobody's work depends on what Prefect shows
        _LOG.warning("the assets of run %s were not told of: %s", flow_run.id, error)


def asset_key(store: Store, kind: str, version: str) -> str:
    """The key of an element or (kind `snapshot`) a snapshot; a store that moves keeps its keys."""
    return f"cellar://{store.history.at(0).id}/{kind}/{version}"


def _made(store: Store, result: object, run: str) -> Iterator[tuple["Asset", set["Asset"], dict[str, Any]]]:
    """The assets that a run made, with their sources and with facts of theirs."""
    catalog, identity = store.catalog(), snapshot_in(result)
    snapshot = store.snapshot(identity) if identity is not None else None
    parts = _parts(snapshot) if snapshot is not None else []
    named = catalog.get_all(mentioned(_plain(result))).values()
    for row in sorted({row.version: row for row in [*named, *parts]}.values(), key=lambda row: row.name):
        commit = store.history.at(row.commit)
        if row.kind != _COUNTED and commit.run.get("flow_run") == run:
            sources = {
                _element(store, source) for source in sources_of(store, row) if source.kind != _COUNTED
            }
            yield _element(store, row), sources, _facts(commit, ref=str(row.ref), bytes=row.length)
    pinned = store.history.last_pin(snapshot.id) if snapshot is not None else None
    if snapshot is not None and pinned is not None and pinned.run.get("flow_run") == run:
        sources = {_element(store, row) for row in parts}
        sources |= {_element(store, report) for report in recorded_corpora(store, snapshot.id)}
        facts = _facts(pinned, elements=snapshot.count, bytes=snapshot.bytes, kinds=snapshot.kinds)
        yield _asset(store, "snapshot", snapshot.id, snapshot.id[:12]), sources, facts


def _parts(snapshot: Snapshot) -> list[Row]:
    """What a snapshot holds besides memories."""
    return [row for kind in snapshot.kinds if kind != _COUNTED for row in snapshot.rows(kind)]


def _plain(result: object) -> Any:
    """What a flow returned, as JSON values: a pin, several, or a record."""
    if isinstance(result, list | tuple):
        return [_plain(one) for one in result]
    dump = getattr(result, "model_dump", None)
    return dump(mode="json") if dump is not None else result


def _element(store: Store, row: Row | Ref) -> "Asset":
    return _asset(store, row.name.partition("/")[0], row.version, row.name)


def _asset(store: Store, kind: str, version: str, name: str) -> "Asset":
    from prefect.assets import Asset, AssetProperties

    return Asset(key=asset_key(store, kind, version), properties=AssetProperties(name=name))


def _facts(commit: Commit, **more: Any) -> dict[str, Any]:
    known: dict[str, Any] = {name: commit.run[name] for name in ("version", "revision") if name in commit.run}
    return {"commit": commit.sequence, "message": commit.message, **known, **more}


def _materialise(asset: "Asset", sources: set["Asset"], facts: dict[str, Any]) -> None:
    """Send the events that Prefect itself sends for a task that materialises an asset."""
    from prefect.context import AssetContext
    from prefect.states import Completed

    context = AssetContext(
        downstream_assets={asset},
        direct_asset_dependencies=sources,
        materialized_by=MADE_BY,
        materialization_metadata={asset.key: facts},
    )
    context.emit_events(Completed())
