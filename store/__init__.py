"""What exists: immutable, checksummed, addressable elements in a folder or an S3 bucket.

    store = Store.open_or_create("file:build/store")
    [ref] = store.publish([Element("skill", "greet", payload)], message="first skill")
    snapshot = store.pin([ref], message="only that")
    payload = snapshot.read("skill/greet")

Nothing here computes or schedules anything; see `docs/formats.md` for what lies in the bucket.
"""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from store.build import Build
    from store.cache import ReadCache
    from store.catalog import Catalog
    from store.claims import Claim
    from store.element import KINDS, Element, Ref, fingerprint
    from store.errors import CellarError
    from store.format import canonical_json
    from store.holds import Hold, HoldInfo
    from store.log import Commit
    from store.positions import Position
    from store.recipe import Recipe
    from store.rows import Row
    from store.snapshot import Snapshot
    from store.store import Store
    from store.verify import Finding, VerifyReport
    from store.writer import Receipt, Writer

__all__ = [
    "KINDS",
    "Build",
    "Catalog",
    "CellarError",
    "Claim",
    "Commit",
    "Element",
    "Finding",
    "Hold",
    "HoldInfo",
    "Position",
    "ReadCache",
    "Receipt",
    "Recipe",
    "Ref",
    "Row",
    "Snapshot",
    "Store",
    "VerifyReport",
    "Writer",
    "canonical_json",
    "fingerprint",
]

export_lazily(__name__)
