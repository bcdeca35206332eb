"""The writer of one unit of work: elements in, packs and one part out, a receipt back.

The order of writes is what makes a kill at any point harmless: packs first, the part that names them
after, and nothing is visible until a commit merges the part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Self

from store.backend import Backend
from store.element import Element, Ref
from store.errors import InputError
from store.format import pack_key, part_key, plain, sha256
from store.pack import TARGET_BYTES, PackBuilder
from store.rows import Row, encode_rows


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a worker returns for one finished unit; small, JSON-able, and all that a commit needs.

    `part` is the digest of the part file, `elements` and `bytes` (payload bytes) count what it holds, `packs`
    are (digest, size) pairs, `notes` is what the worker wanted to remember about the unit.
    """

    build: str
    unit: str
    part: str
    elements: int
    bytes: int
    packs: tuple[tuple[str, int], ...] = ()
    notes: dict[str, Any] = field(default_factory=dict, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values that `from_dict` takes back."""
        return {**asdict(self), "packs": [list(pack) for pack in self.packs]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Receipt:
        """Rebuild a receipt from `to_dict`."""
        return cls(**{**values, "packs": tuple((str(digest), int(size)) for digest, size in values["packs"])})


class Writer:
    """Writes the elements of one unit. Use as a context manager; without `finish` nothing counts.

    Memory is bounded by two packs plus the largest payload. One writer belongs to one thread.
    """

    def __init__(
        self,
        backend: Backend,
        build: str,
        unit: str,
        *,
        renew: Callable[[], None],
        target_bytes: int = TARGET_BYTES,
    ) -> None:
        self._backend = backend
        self._build = build
        self._unit = unit
        self._renew = renew
        self._target = target_bytes
        self._pack = PackBuilder()
        self._rows: list[Row] = []
        self._versions: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._receipt: Receipt | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pack = PackBuilder()

    def add(self, element: Element) -> Ref:
        """Hash an element and put it into the current pack; a repeated version is kept once."""
        if self._receipt is not None:
            raise InputError(f"unit {self._unit!r} is finished; open another writer for more elements")
        if element.version not in self._versions:
            if not self._pack.empty and len(element.payload) > self._target:
                self._upload()
            self._versions.add(element.version)
            self._pack.add(element)
            if len(self._pack) >= self._target:
                self._upload()
        return element.ref

    def finish(self, *, notes: Mapping[str, Any] | None = None) -> Receipt:
        """Upload what is left and the part, and return the receipt; again if called again.

        A unit without elements is a result too: it is recorded, so that a rerun skips it. `notes` (JSON) come
        back in the receipts of a resumed build.
        """
        if self._receipt is None:
            self._upload()
            kept: dict[str, Any] = plain(notes or {})
            part = encode_rows(self._rows, {"notes": kept, "packs": self._sizes, "unit": self._unit})
            digest = sha256(part)
            self._backend.put(part_key(self._build, digest), part)
            self._receipt = Receipt(
                build=self._build,
                unit=self._unit,
                part=digest,
                elements=len(self._rows),
                bytes=sum(row.length for row in self._rows),
                packs=tuple(sorted(self._sizes.items())),
                notes=kept,
            )
        return self._receipt

    def _upload(self) -> None:
        if self._pack.empty:
            return
        self._renew()
        sealed = self._pack.seal()
        self._backend.put(pack_key(sealed.digest), sealed.data)
        self._rows.extend(sealed.rows)
        self._sizes[sealed.digest] = len(sealed.data)
        self._pack = PackBuilder()
