"""Whether a snapshot can be evaluated, and with which core: asked before anything is started for it."""

from flows.provenance.inputs import core_of, named_core
from store import Ref, Snapshot, Store
from store.errors import ElementNotFound
from tasks.assembly.params import AssemblyParams

_SEARCHED = ("index", "reranker")


def check_indexed(snapshot: Snapshot) -> None:
    """Refuse a snapshot whose memories nothing finds, with what to do about it.

    Raises `ElementNotFound`.
    """
    missing = [kind for kind in _SEARCHED if not snapshot.kinds.get(kind)]
    if not missing:
        return
    from tasks.package import is_package

    lacks = f"snapshot {snapshot.id[:12]} holds no {' and no '.join(missing)}"
    if is_package(snapshot):
        raise ElementNotFound(
            f"{lacks}, since it is an imported package of an evaluation; score it with `cellar eval run "
            "--package` and the export that it came from"
        )
    raise ElementNotFound(
        f"{lacks} to find its memories with; run `cellar index build`, then `cellar snapshot pin`, or name "
        "another snapshot"
    )


def core_for(store: Store, snapshot: Snapshot, params: AssemblyParams, name: str | None) -> Ref:
    """The named core, otherwise the newest one of these parameters that reads the snapshot's codec.

    Raises as `named_core`, and `ElementNotFound` if none was named and there is none.
    """
    found = core_of(store, snapshot, params) if name is None else named_core(store, snapshot, name)
    if found is None:
        raise ElementNotFound(
            f"no core of these parameters reads the codec of snapshot {snapshot.id[:12]}; run `cellar core "
            "train`"
        )
    return found
