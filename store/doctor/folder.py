"""What a folder's file system must do: hard links, flushing, renaming, locks, and letter case in names.

Every function returns what is wrong, or "" if nothing is. They work on a folder of their own.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path


def hard_links_exclude(folder: Path) -> str:
    """Link two files to one name: the first appears under it, the second is refused."""
    first, second, name = (_file(folder, word) for word in ("link-1", "link-2", "link"))
    name.unlink()
    try:
        name.hardlink_to(first)
    except OSError as error:
        return f"the file system makes no hard links ({_reason(error)})"
    try:
        name.hardlink_to(second)
    except FileExistsError:
        same = name.read_bytes() == first.read_bytes() and name.stat().st_ino == first.stat().st_ino
        return "" if same else "a hard link shows another file"
    return "a second hard link replaces the first one"


def files_can_be_flushed(folder: Path) -> str:
    """Flush a file and the folder that names it to the disk."""
    path = _file(folder, "flush")
    for what, flags in ((path, os.O_RDWR), (folder, os.O_RDONLY | os.O_DIRECTORY)):
        handle = os.open(what, flags)
        try:
            os.fsync(handle)
        except OSError as error:
            noun = "folders" if what == folder else "files"
            return f"the file system does not flush {noun} to the disk ({_reason(error)})"
        finally:
            os.close(handle)
    return ""


def renames_replace(folder: Path) -> str:
    """Rename a file over another one while a reader holds the old one open."""
    old, new = _file(folder, "rename-old"), _file(folder, "rename-new")
    content, before = new.read_bytes(), old.read_bytes()
    with old.open("rb") as reader:
        try:
            new.replace(old)
        except OSError as error:
            return f"a file cannot be renamed over another one ({_reason(error)})"
        held = reader.read()
    if old.read_bytes() != content or new.exists() or held != before:
        return "a file that is renamed over another one does not replace it in one step"
    return ""


def locks_exclude(folder: Path) -> str:
    """Lock a file twice: the second lock must wait until the first is released."""
    path = _file(folder, "lock")
    with path.open("ab") as first, path.open("ab") as second:
        try:
            fcntl.flock(first, fcntl.LOCK_EX)
            try:
                fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                fcntl.flock(first, fcntl.LOCK_UN)
                fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return ""
        except OSError as error:
            return f"the file system has no locks ({_reason(error)})"
    return "two holders have the same exclusive lock (flock does nothing)"


def names_keep_their_case(folder: Path) -> str:
    """Make two files whose names differ in letter case only; tags and heads may be called so."""
    lower, upper = _file(folder, "case"), _file(folder, "CASE")
    return "" if lower.read_bytes() != upper.read_bytes() else "file names that differ in case are one file"


TRIALS: dict[str, tuple[Callable[[Path], str], str]] = {
    "hard-links": (hard_links_exclude, "a hard link appears under a name once"),
    "fsync": (files_can_be_flushed, "files and folders are flushed to the disk"),
    "rename": (renames_replace, "a renamed file replaces another one in one step"),
    "lock": (locks_exclude, "a lock keeps others out"),
    "case": (names_keep_their_case, "upper and lower case are told apart in names"),
}


def _file(folder: Path, name: str) -> Path:
    """Make a file that holds its own name."""
    path = folder / name
    path.write_text(name)
    return path


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else type(error).__name__
