"""The place where a pass over the packs of a store stopped, kept between commands."""

import json
import logging
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from store.backend import Backend
    from store.verify import Cursor, VerifyReport

_LOG = logging.getLogger(__name__)


class KeptCursor:
    """The place where a pass over a store stopped, in the work directory, by the id of the store.

    `known` tells whether the store could be asked for its id.
    """

    def __init__(self, path: Path, *, known: bool) -> None:
        self.known = known
        self._path = path
        self._cursor: Cursor | None = None
        self._written = float("-inf")
        self._can_write = True

    @classmethod
    def of(cls, work_dir: Path, backend: "Backend") -> Self:
        """The kept place for the store on `backend`, in the work directory."""
        from store.errors import CellarError
        from store.format import FORMAT_KEY, unseal

        try:
            store = unseal(backend.read(FORMAT_KEY), FORMAT_KEY, {"store": str})["store"]
        except CellarError:  # verification itself will say what is wrong
            store = ""
        return cls(work_dir / "verify" / f"{store or 'unknown'}.json", known=bool(store))

    def load(self) -> "Cursor | None":
        """The place where an earlier run stopped, None if none did."""
        from store.errors import InputError
        from store.verify import Cursor

        try:
            return Cursor.from_dict(json.loads(self._path.read_bytes()))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, RecursionError, OSError, InputError) as error:
            raise InputError(f"{self._path} says nothing useful; delete it and start a new pass") from error

    def keep(self, cursor: "Cursor") -> None:
        """Remember how far a pass is; what is killed loses about a second."""
        self._cursor = cursor
        if time.monotonic() - self._written > 1.0:
            self.write()

    def write(self) -> bool:
        """Write down how far the pass is; False if none was begun, or nothing can be written there."""
        if self._cursor is None or not self._can_write:
            return False
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(self._cursor.to_dict()) + "\n")
        except (
            OSError
        ) as error:  # who only reads may have no place to write, and wants to verify all the same
            self._can_write = False
            _LOG.warning(
                "--resume will not continue this pass, for which nothing can be written in %s (%s); "
                "set CELLAR_WORK_DIR",
                self._path,
                error.strerror,
            )
            return False
        self._written = time.monotonic()
        return True

    def finish(self, report: "VerifyReport") -> None:
        """Write down where the pass stopped, or forget it if it is over."""
        self._cursor = report.cursor
        if not self.write() and report.sample:
            with suppress(OSError):  # then there is none to forget
                self._path.unlink(missing_ok=True)
