"""The writer of one unit of work: elements in, packs and one part out, a receipt back.

The order of writes is what makes a kill at any point harmless: packs first, the part that names them
after, and nothing is visible until a commit merges the part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Self

import pyarrow.compute as pc

from store.backend import Backend
from store.element import Element, Ref
from store.errors import InputError
from store.format import part_key, plain, sha256
from store.pack import TARGET_BYTES, PackBuilder, SealedPack
from store.rows import encode_described
from store.uploads import Uploads


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

    While a pack is filled, those before it are checked and written by other threads: memory is bounded by
    four packs plus the largest payload. What ends an upload is raised by a later `add` or by `finish`, and
    calling that again tries again. One writer belongs to one thread.
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
        self._uploads = Uploads(backend)
        self._pack = self._uploads.new_pack()
        self._versions: set[str] = set()
        self._receipt: Receipt | None = None
        self._left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left = True
        self._pack = PackBuilder()
        self._uploads.close()

    def add(self, element: Element) -> Ref:
        """Hash an element and put it into the current pack; a repeated version is kept once.

        If an earlier pack could not be written, raises why, and the element was not added.
        """
        if self._receipt is not None:
            raise InputError(f"unit {self._unit!r} is finished; open another writer for more elements")
        self._check_open()
        if element.version not in self._versions:
            if len(self._pack) >= self._target or len(element.payload) > self._target:
                self._send()
            self._pack.add(element)
            self._versions.add(element.version)
        return element.ref

    def add_pack(self, pack: SealedPack, *, stored: bool = False) -> None:
        """Take over a finished pack as it is, writing it unless the storage has it already (`stored`).

        The caller has checked it. Its rows become visible; whatever else it holds does not.
        """
        if self._receipt is not None:
            raise InputError(f"unit {self._unit!r} is finished; open another writer for more packs")
        self._check_open()
        self._send()
        self._renew()
        self._uploads.take_over(pack, stored=stored)

    def finish(self, *, notes: Mapping[str, Any] | None = None) -> Receipt:
        """Upload what is left, wait for all packs, write the part, and return the receipt; again if repeated.

        A unit without elements is a result too: it is recorded, so that a rerun skips it. `notes` (JSON) come
        back in the receipts of a resumed build.
        """
        if self._receipt is None:
            self._check_open()
            self._send()
            self._uploads.wait()
            kept: dict[str, Any] = plain(notes or {})
            rows, sizes = self._uploads.rows(), self._uploads.sizes()
            part = encode_described(rows, {"notes": kept, "packs": sizes, "unit": self._unit})
            digest = sha256(part)
            self._backend.put(part_key(self._build, digest), part)
            self._receipt = Receipt(
                build=self._build,
                unit=self._unit,
                part=digest,
                elements=len(rows),
                bytes=pc.sum(rows["length"]).as_py() or 0,
                packs=tuple(sorted(sizes.items())),
                notes=kept,
            )
        return self._receipt

    def _send(self) -> None:
        if not self._pack.empty:
            self._renew()
            self._uploads.send(self._pack)
            self._pack = self._uploads.new_pack()

    def _check_open(self) -> None:
        if self._left:
            raise InputError(f"unit {self._unit!r} was left unfinished; open another writer for it")
