"""Packs on their way into the storage: checked and written by threads while the next pack is filled."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from store.backend import Backend, HashedBytes
from store.format import pack_key
from store.pack import PackBuilder, SealedPack
from store.rows import tabulate

_PACKS = 3
"""Packs in flight; with the one that is being filled, what a writer holds in memory."""
_BYTES = 128 * 1024**2
"""Bytes in flight, unless one pack alone is larger."""


@dataclass(slots=True)
class _Upload:
    """One pack; its builder is let go when it was written, which says that it was."""

    pack: PackBuilder | None
    size: int
    digest: str = ""
    rows: pa.Table | None = None
    future: Future[None] | None = None


class Uploads:
    """The packs of one writer, in the order sent. Belongs to one thread; uses a few of its own.

    What ends an upload is raised by the next call that waits, once for all packs that met it. Packs that were
    not written are kept, and tried again by the call after that.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._all: list[_Upload] = []
        self._unwritten: list[_Upload] = []
        self._pool: ThreadPoolExecutor | None = None
        self._buffers: deque[HashedBytes] = deque()

    def new_pack(self) -> PackBuilder:
        """Return an empty pack, in the memory of one that was written if there is one."""
        return PackBuilder(self._buffers.pop() if self._buffers else None)

    def send(self, pack: PackBuilder) -> None:
        """Check and write a pack in the background; waits until there is room for it.

        If that raises, the pack was not taken over.
        """
        while self._is_full_for(pack):
            self._settle(self._unwritten[:1])
        upload = _Upload(pack, len(pack))
        self._all.append(upload)
        self._unwritten.append(upload)
        self._begin(upload)

    def take_over(self, pack: SealedPack, *, stored: bool) -> None:
        """Write a pack that was finished and checked elsewhere, here and now, unless it is `stored`."""
        if not stored:
            self._backend.put(pack_key(pack.digest), pack.data)
        self._all.append(_Upload(None, len(pack.data), pack.digest, tabulate(pack.rows)))

    def wait(self) -> None:
        """Wait until every pack is written and no thread is left."""
        self._settle(self._unwritten)
        self.close()

    def close(self) -> None:
        """End the threads: what is being written is written first, what waits for a thread is dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        self._buffers.clear()

    def sizes(self) -> dict[str, int]:
        """Digest and size of every pack that was written, in the order sent."""
        return {upload.digest: upload.size for upload in self._all if upload.rows is not None}

    def rows(self) -> pa.Table:
        """The rows of every pack that was written, in the order sent."""
        tables = [upload.rows for upload in self._all if upload.rows is not None]
        return pa.concat_tables([tabulate([]), *tables])

    def _is_full_for(self, pack: PackBuilder) -> bool:
        self._unwritten = [upload for upload in self._unwritten if upload.pack is not None]
        size = len(pack) + sum(upload.size for upload in self._unwritten)
        return len(self._unwritten) >= _PACKS or (size > _BYTES and len(self._unwritten) > 0)

    def _settle(self, uploads: Sequence[_Upload]) -> None:
        """Wait for `uploads`, and if one of them failed for all, so that one outage is one error."""
        futures = [self._begin(upload) for upload in uploads]
        if not any(future.exception() for future in futures):
            return
        ended = [(upload, self._begin(upload)) for upload in self._unwritten]
        errors = [future.exception() for _, future in ended]
        for upload, _ in ended:
            upload.future = None
        raise next(error for error in errors if error is not None)

    def _begin(self, upload: _Upload) -> Future[None]:
        if upload.future is None:
            self._pool = self._pool or ThreadPoolExecutor(_PACKS)
            upload.future = self._pool.submit(self._write, upload)
        return upload.future

    def _write(self, upload: _Upload) -> None:
        if upload.pack is None:
            return
        sealed = upload.pack.seal()
        self._backend.put(pack_key(sealed.digest), sealed.data)
        upload.rows, upload.digest, upload.size = tabulate(sealed.rows), sealed.digest, len(sealed.data)
        upload.pack = None
        if isinstance(sealed.data, HashedBytes) and len(sealed.data) <= _BYTES // _PACKS:
            self._buffers.append(sealed.data)
