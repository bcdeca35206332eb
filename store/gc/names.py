"""Who keeps what alive: tags, heads and holds name snapshots, leases protect what builds have written."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

import pyarrow.compute as pc

from store.backend import Backend, ObjectInfo
from store.errors import IntegrityError, KeyMissing
from store.format import (
    BUILD_PREFIX,
    HEAD_PREFIX,
    TAG_PREFIX,
    check_digest,
    lease_key,
    parts_prefix,
    unseal,
)
from store.holds import list_holds
from store.lease import LEASE_SECONDS
from store.refs import list_refs
from store.rows import decode_table

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Names:
    """The snapshots that tags, heads and holds name, by name; only holds that still count."""

    tags: dict[str, str]
    heads: dict[str, str]
    holds: dict[str, str]

    @classmethod
    def read(cls, backend: Backend, now: datetime) -> Names:
        """Read all names; raises `IntegrityError` for a damaged one, since nobody knows what it keeps."""
        holds = {hold.name: hold.snapshot for hold in list_holds(backend) if not hold.expired(now)}
        return cls(list_refs(backend, TAG_PREFIX), list_refs(backend, HEAD_PREFIX), holds)

    def by_snapshot(self) -> dict[str, str]:
        """Return the named snapshots, each with one of its names as text."""
        kinds = (("hold", self.holds), ("head", self.heads), ("tag", self.tags))
        return {identity: f"{noun} {name}" for noun, names in kinds for name, identity in names.items()}


@dataclass(frozen=True, slots=True)
class BuildFiles:
    """The files of one build; `newest` is when the last one was written, `live` whether its lease counts."""

    name: str
    objects: tuple[ObjectInfo, ...]
    newest: datetime
    live: bool


@dataclass(frozen=True, slots=True)
class Protected:
    """What the parts of live builds refer to: packs, and versions that their elements require."""

    packs: set[str] = field(default_factory=set)
    requires: set[str] = field(default_factory=set)


def read_builds(backend: Backend, now: datetime) -> Iterator[BuildFiles]:
    """Yield every build that has files, by name."""
    listed = backend.list(BUILD_PREFIX)
    for name, items in groupby(listed, key=lambda item: item.key.removeprefix(BUILD_PREFIX).split("/")[0]):
        objects = tuple(items)
        newest = max(item.modified for item in objects)
        yield BuildFiles(name, objects, newest, live=lease_counts(backend, name, now))


def lease_counts(backend: Backend, build: str, now: datetime) -> bool:
    """Tell whether the lease of a build still counts, by the storage's clock.

    It never counts longer than `LEASE_SECONDS`, and one that is damaged or says what none can counts that
    long.
    """
    key = lease_key(build)
    try:
        record = unseal(backend.read(key), key, {"seconds": int})
        seconds = record["seconds"] if 0 <= record["seconds"] <= LEASE_SECONDS else LEASE_SECONDS
    except KeyMissing:
        return False
    except IntegrityError as error:
        _log.warning("the lease of build %s counts as long as any may: %s", build, error)
        seconds = LEASE_SECONDS
    info = backend.info(key)  # after its content, so that a renewal meanwhile counts
    return info is not None and now - info.modified < timedelta(seconds=seconds)


def read_protected(backend: Backend, builds: list[BuildFiles]) -> Protected:
    """Read what the parts of those `builds` that are live refer to.

    A damaged part protects nothing: no commit takes it.
    """
    found = Protected()
    for build in builds:
        parts = parts_prefix(build.name)
        for item in build.objects:
            if build.live and item.key.startswith(parts):
                try:
                    digest = item.key.removeprefix(parts).removesuffix(".parquet")
                    data = check_digest(backend.read(item.key), digest, item.key, holds="part of a build")
                    table, metadata = decode_table(data, item.key)
                except (IntegrityError, KeyMissing) as error:
                    _log.warning("a part of build %s protects nothing: %s", build.name, error)
                    continue
                found.packs.update(metadata["packs"])
                found.requires.update(pc.list_flatten(table["requires"]).unique().to_pylist())
    return found
