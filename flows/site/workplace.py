"""The folder beside a site in which the next one is written: by one build at a time, nothing of others."""

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

from flows.errors import SiteBusy, UsageError
from flows.settings import make_folder

_MARKER = "cellar-site-build"


class Workplace:
    """A folder that a file in it marks as a site build's own; what lies in one without it stays."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = -1

    def take(self, out: Path) -> None:
        """Make the folder, or take over what a build of `out` left that was killed.

        Raises:
            UsageError: something else is there: a link, or a folder that no build made or nobody may read.
            SiteBusy: another build writes `out`.
            SettingsError: there is a file, or no folder can be made there.
        """
        make_folder(self.path, "--out")
        try:
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError as error:  # another build removed its folder at this moment
            raise _busy(out) from error
        except OSError as error:
            raise self._foreign(out) from error
        try:
            self._claim(out)
        except BaseException:
            os.close(self._lock)
            raise

    def give_back(self) -> None:
        """Remove the folder; what somebody put into it meanwhile stays, and so does the mark then."""
        with suppress(OSError):  # what cannot be removed is taken over by the next build
            if os.listdir(self.path) == [_MARKER]:  # noqa: PTH208 - names are all that is needed
                (self.path / _MARKER).unlink()
                self.path.rmdir()
        os.close(self._lock)

    def _claim(self, out: Path) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _busy(out) from error
        if not self._is_still_there():
            raise _busy(out)
        marker = self.path / _MARKER
        if any(self.path.iterdir()) and (marker.is_symlink() or not marker.is_file()):
            raise self._foreign(out)
        marker.touch()

    def _is_still_there(self) -> bool:
        """Whether the folder that is locked is the one under the name: a build that ended removes its own."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(self._lock))

    def _foreign(self, out: Path) -> UsageError:
        return UsageError(
            f"{self.path} is where {out} is written before it is complete, and no site build made it; "
            "move it away, or name another folder with --out"
        )


def remove(path: Path) -> None:
    """Remove what is there, if anything; of a link, the link alone."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _busy(out: Path) -> SiteBusy:
    return SiteBusy(f"another `cellar site build` writes {out}; wait for it to end")
