"""The folder of a site: written beside the old one, swapped in whole, never over files of others."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from flows.errors import UsageError
from flows.settings import make_folder
from flows.site.workplace import Workplace, remove
from store.paths import usable_path

MARKER = "cellar-site.json"
_VERSION = 1


class SiteFolder:
    """A new site at `out`, which takes the place of the old one when the context ends without an error.

    Until then, and for ever if something goes wrong, the old one stays as it is. Files that have not changed
    are the same files as before, with their times, so that a copying tool has little to copy.
    """

    def __init__(self, out: Path) -> None:
        self._out = usable_path(out, UsageError, "--out").absolute()
        if not self._out.name:
            raise UsageError(f"--out is {str(out)!r}, which is no folder of its own; name one inside it")
        self._work = Workplace(self._out.with_name(f".{self._out.name}.build"))
        self._new, self._former = self._work.path / "new", self._work.path / "former"
        self._files: list[str] = []
        self.bytes = 0

    def check(self) -> None:
        """Raise UsageError if other things are in the place; nothing is taken or written."""
        check_ours(self._out)

    def __enter__(self) -> Self:
        """Take the place; raises UsageError if other things are there, SiteBusy if another build writes."""
        make_folder(self._out.parent, "--out")
        self._work.take(self._out)  # where the name is too long for a folder, this says so
        try:
            check_ours(self._out)
            self._recover()
            self._new.mkdir()
        except BaseException:
            self._work.give_back()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                marker = {"files": sorted(self._files), "site": _VERSION}
                (self._new / MARKER).write_text(json.dumps(marker, indent=0) + "\n", encoding="utf-8")
                self._swap()
        finally:
            remove(self._new)  # it is there only if something went wrong
            self._work.give_back()

    @property
    def files(self) -> int:
        """Files written so far."""
        return len(self._files)

    def write(self, name: str, content: str) -> None:
        """Write one file; `name` is its path inside the site."""
        data = content.encode("utf-8")
        path, old = self._new / name, self._out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not _is_same(old, data) or not _link(old, path):
            path.write_bytes(data)
        self._files.append(name)
        self.bytes += len(data)

    def _swap(self) -> None:
        if not os.path.lexists(self._out):
            self._new.rename(self._out)
            return
        check_ours(self._out)  # once more: somebody may have put a file there meanwhile
        if self._out.is_dir() and not any(self._out.iterdir()):
            self._out.rmdir()
            self._new.rename(self._out)
            return
        self._out.rename(self._former)
        try:
            self._new.rename(self._out)
        except OSError:
            self._former.rename(self._out)
            raise
        remove(self._former)

    def _recover(self) -> None:
        """Undo what a build left that was killed at any moment."""
        remove(self._new)
        if self._former.is_dir() and not self._former.is_symlink() and not self._out.exists():
            self._former.rename(self._out)
        remove(self._former)


def check_ours(out: Path) -> None:
    """Raise UsageError unless `out` is missing, empty, or a site that nobody put other files into."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(f"{out} is no folder of its own (a file or a link); name another with --out")
    if not out.exists() or not any(out.iterdir()):
        return
    ours = _files_of(out)
    if ours is None:
        raise UsageError(f"{out} holds other files and no site of cellar; name another folder with --out")
    foreign = next((name for name in _walk(out) if name not in ours), None)
    if foreign is not None:
        raise UsageError(
            f"{out}/{foreign} does not belong to the site there, and would be lost with the old one; move it "
            "away, or name another folder with --out"
        )


def _files_of(out: Path) -> set[str] | None:
    """The files that the site at `out` consists of; None if it is no site."""
    try:
        marker: Any = json.loads((out / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(marker, dict) or "site" not in marker or not isinstance(marker.get("files"), list):
        return None
    return {str(name) for name in marker["files"]} | {MARKER}


def _walk(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        for name in (*names, *links):
            yield (Path(parent) / name).relative_to(folder).as_posix()


def _is_same(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def _link(old: Path, new: Path) -> bool:
    try:
        os.link(old, new)
    except OSError:  # a file system without hard links
        return False
    return True
