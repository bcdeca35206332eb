"""What an evaluation from the command line is of: looked up before anything is started."""

from typing import TYPE_CHECKING

from flows.cli.session import Session

if TYPE_CHECKING:
    from flows.params import Params
    from flows.pins import Pin, Stage
    from store import Snapshot


def read_pinned(session: Session, *stages: "Stage") -> "dict[Stage, Pin]":
    """The pins of the snapshot and of these stages, that of the snapshot looked for first.

    Raises `PinError` with a hint that a snapshot can be named instead.
    """
    from flows.errors import PinError
    from flows.pins import read_pin

    pins = session.settings.pins
    try:
        snapshot = read_pin(pins, "snapshot")
        return {stage: snapshot if stage == "snapshot" else read_pin(pins, stage) for stage in stages}
    except PinError as error:
        raise PinError(f"{error}, or name a snapshot with --snapshot") from error


def open_snapshot(session: Session, snapshot: str | None) -> "Snapshot":
    """The named snapshot, otherwise the one that was pinned last."""
    store = session.open_store()
    if snapshot is None:
        snapshot = read_pinned(session, "snapshot")["snapshot"].snapshot
        assert snapshot is not None, "the snapshot stage pins a snapshot"
    return store.snapshot(snapshot)


def indexed_snapshot(session: Session, snapshot: str | None) -> "Snapshot":
    """`open_snapshot`, if it holds an index and a reranker."""
    from flows.provenance.evidence import check_indexed

    opened = open_snapshot(session, snapshot)
    check_indexed(opened)
    return opened


def exact_core(session: Session, opened: "Snapshot", core: str | None) -> str | None:
    """The exact reference of a core that somebody names; None stays, a new one may be meant.

    Raises as `named_core`.
    """
    from flows.provenance.inputs import named_core

    return None if core is None else str(named_core(session.open_store(), opened, core))


def snapshot_and_core(
    params: "Params", session: Session, snapshot: str | None, core: str | None
) -> tuple["Snapshot", str]:
    """An indexed snapshot and the core that reads it, of the pin files where no snapshot is given.

    Without a name the core of a given snapshot is the newest one of the same parameters.
    """
    from flows.provenance.evidence import core_for

    if snapshot is None:
        core = str(read_pinned(session, "core")["core"].one("core"))
    opened = indexed_snapshot(session, snapshot)
    return opened, str(core_for(session.open_store(), opened, params.assembly, core))
