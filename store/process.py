"""Who this process is on its machine, and whether another one that said so still lives there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STARTED = 19
"""Place of the start time among the fields of `/proc/<pid>/stat` after the name in parentheses."""

_LARGEST = 2**31 - 1
"""What a system takes as the number of a process; an identity is read from a record that anybody wrote."""


def identity(number: int | None = None) -> dict[str, Any] | None:
    """Return what tells a process, by default this one, from every other: boot, namespace, number and start.

    None where the system does not say so (it has no `/proc`, or no such process).
    """
    number = os.getpid() if number is None else number
    try:
        boot, space = _place()
        return {"boot": boot, "space": space, "number": number, "started": _started(number)}
    except OSError:
        return None


def is_dead(process: object) -> bool:
    """Whether it is certain that the process with that `identity` is no more; False if nobody here can know.

    A process of another boot or namespace may live on another machine that looks like this one.
    """
    return _lives(process) is False


def is_alive(process: object) -> bool:
    """Whether it is certain that the process with that `identity` still runs."""
    return _lives(process) is True


def _lives(process: object) -> bool | None:
    match process:
        case {
            "boot": str(boot),
            "space": str(space),
            "number": int(number),
            "started": int(started),
        } if 0 < number <= _LARGEST:
            try:
                return _started(number) == started if (boot, space) == _place() else None
            except (FileNotFoundError, ProcessLookupError):
                return False if _is_free(number) else None
            except OSError:
                return None
    return None


def _is_free(number: int) -> bool:
    """Whether no process has that number: one of another user may be hidden from `/proc`."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _place() -> tuple[str, str]:
    """The boot of the machine and the namespace that process numbers belong to."""
    return _BOOT.read_text(encoding="ascii").strip(), str(Path("/proc/self/ns/pid").readlink())


def _started(number: int) -> int:
    """When a process began, in clock ticks since the boot; a zombie no longer counts as one that lives."""
    text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    fields = text.rpartition(")")[2].split()
    return -1 if fields[0] in ("Z", "X") else int(fields[_STARTED])
