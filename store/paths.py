"""Paths as people write them: what no system takes, and what is no file to read, is said in one sentence."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from store.errors import CellarError

_LONGEST_PATH, _LONGEST_NAME = 4095, 255
"""Bytes that Linux takes in a path and in each of its parts."""


def usable_path(path: str | Path, error: type[CellarError], name: str) -> Path:
    """Return a path with its `~` or `~user` written out; whatever is there, or not, is for the caller to see.

    Raises `error`, saying what the path was given as, where no file could have it: a zero byte, a user
    without a home, more than a path or a name may be long.
    """
    text = os.fspath(path)
    if "\0" in text:
        raise error(f"{name} holds a zero byte, which no path has; write another")
    try:
        place = Path(text).expanduser()
        encoded = os.fsencode(place.absolute())
    except RuntimeError as cause:
        raise error(f"{name}: there is no home folder for {text[:120]}; write the whole path") from cause
    except UnicodeEncodeError as cause:
        raise error(f"{name} holds a character that no path has; write another") from cause
    if len(encoded) > _LONGEST_PATH or max(map(len, encoded.split(b"/"))) > _LONGEST_NAME:
        raise error(f"{name}: {text[:120]}... is too long for a path; choose a shorter one")
    return place


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def existing_file(path: Path, error: type[CellarError], *, remedy: str, or_folder: bool = False) -> Path:
    """Return the path of a regular file or, where that is allowed, of a folder; links are followed.

    Nothing is opened: who opens a pipe waits for somebody to write into it, and a device may have no end.
    Files are also read twice, for what they are and for what they hold, which a pipe does not bear.

    Raises `error` with what is there instead, followed by `remedy`.
    """
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        why = "is a link to what is gone" if path.is_symlink() else "does not exist"
        raise error(f"{path} {why}; {remedy}") from None
    except OSError as cause:
        if cause.errno == errno.ENAMETOOLONG:
            raise error(f"{str(path)[:120]}... is too long for a path; {remedy}") from None
        raise error(f"{path} cannot be read ({cause.strerror}); {remedy}") from cause
    if kind == stat.S_IFREG or (or_folder and kind == stat.S_IFDIR):
        return path
    found = _KINDS.get(kind, "no regular file")
    raise error(f"{path} is {found}; {remedy}")
