"""What a site tells about: the snapshots of a store with their names and histories, read once."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from store import Commit, Position, Snapshot, Store
from store.errors import CellarError, IntegrityError, SnapshotNotFound
from store.signature import read_signatures


@dataclass(frozen=True)
class Pinned:
    """A snapshot with the commit that pinned it last, and the snapshot that came before it in its line."""

    snapshot: Snapshot
    commit: Commit
    names: tuple[str, ...]
    """Tags, and heads as `head:name`."""
    previous: str
    """Id of the snapshot before it, empty where none is known or left."""
    line: str
    """What makes that one the one before: a head, or the order of pinning."""
    signers: tuple[str, ...]
    unsound: str
    """What is wrong with its signatures, if something is."""

    @property
    def id(self) -> str:
        """The snapshot's id."""
        return self.snapshot.id


@dataclass(frozen=True)
class Survey:
    """The state of a store after its newest commit; `pinned` are the snapshots on the site, newest first."""

    store: Store
    commits: Sequence[Commit]
    pinned: Sequence[Pinned]
    living: int
    """Snapshots of the store, also those that the site leaves out."""
    tags: Mapping[str, str]
    heads: Mapping[str, str]
    positions: Mapping[str, Sequence[Position]]
    """Where each head pointed, oldest first."""
    by_sequence: Mapping[int, Commit]

    @property
    def tip(self) -> Commit:
        """The newest commit."""
        return self.commits[-1] if self.commits else self.store.history.tip

    @property
    def moved(self) -> str:
        """When a head moved last, empty if none did."""
        return max((positions[-1].time for positions in self.positions.values()), default="")


def survey(store: Store, *, most: int, head: str | None, warn: Callable[[object], None]) -> Survey:
    """Read names, log and the newest `most` snapshots; of one head's history only if `head` is given.

    Raises SnapshotNotFound where there is no such head. `warn` is told of damaged names and snapshots, which
    are left out.
    """
    held = store.snapshots()
    store.catalog()  # later than the list, so that what the snapshots hold is visible
    commits = store.history.commits()
    heads, tags = store.heads(damaged=warn), store.tags(damaged=warn)
    if head is not None:
        heads = {head: store.head_log(head)[-1].snapshot}
    positions = _positions(store, heads, warn)
    lines = {name: [position.snapshot for position in found] for name, found in positions.items()}
    if head is not None:
        held = [snapshot for snapshot in held if snapshot.id in lines[head]]
    held.sort(key=lambda snapshot: snapshot.commit.sequence, reverse=True)
    names, living = _names(tags, heads), {snapshot.id for snapshot in held}
    pinned: list[Pinned] = []
    for place, one in enumerate(held):
        if most and len(pinned) == most:
            break
        earlier = held[place + 1].id if place + 1 < len(held) else ""
        previous, line = _before(one.id, lines, living) or (earlier, "the order of pinning")
        try:
            opened = store.snapshot(one.id)
        except (IntegrityError, SnapshotNotFound) as error:  # damaged, or collected just now
            warn(f"a snapshot is left out: {error}")
            continue
        signers, unsound = _signers(store, one.id)
        pinned.append(Pinned(opened, one.commit, names.get(one.id, ()), previous, line, signers, unsound))
    by_sequence = {commit.sequence: commit for commit in commits}
    return Survey(store, commits, pinned, len(held), tags, heads, positions, by_sequence)


def made_by(run: Mapping[str, Any]) -> str:
    """Who made a commit, in a few words; empty where nobody said."""
    command = run.get("command") or run.get("flow") or run.get("flow_name") or ""
    who = "@".join(str(run[name]) for name in ("user", "host") if run.get(name))
    return " by ".join(str(part) for part in (command, who) if part)


def _positions(
    store: Store, heads: Mapping[str, str], warn: Callable[[object], None]
) -> dict[str, Sequence[Position]]:
    """Where each head pointed, oldest first."""
    found: dict[str, Sequence[Position]] = {}
    for name in heads:
        try:
            found[name] = store.head_log(name)
        except CellarError as error:
            warn(error)
    return found


def _before(
    identity: str, lines: Mapping[str, Sequence[str]], living: Collection[str]
) -> tuple[str, str] | None:
    """The snapshot that a head pointed to before it first came to `identity`, if that still exists."""
    for name, line in sorted(lines.items()):
        if identity in line:
            earlier = [one for one in line[: line.index(identity)] if one in living]
            if earlier:
                return earlier[-1], f"head {name}"
            return "", f"head {name}"
    return None


def _names(tags: Mapping[str, str], heads: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    names: dict[str, list[str]] = {}
    for name, identity in tags.items():
        names.setdefault(identity, []).append(name)
    for name, identity in heads.items():
        names.setdefault(identity, []).append(f"head:{name}")
    return {identity: tuple(sorted(given)) for identity, given in names.items()}


def _signers(store: Store, identity: str) -> tuple[tuple[str, ...], str]:
    """Ids of the keys that signed, and what is wrong with a signature."""
    found: list[str] = []
    try:
        found.extend(signature.key_id for signature in read_signatures(store.backend, identity))
    except IntegrityError as error:
        return tuple(found), str(error)
    return tuple(found), ""
