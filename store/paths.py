"""Paths as people write them: `~` becomes a folder, and what no system takes is said in one sentence."""

from __future__ import annotations

import os
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
