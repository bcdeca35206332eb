"""How a command ends: its exit code and the one sentence it leaves on the terminal."""

import errno
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FrameType

OK, BUG, BAD_INPUT, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 6, 130
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_IN_THE_WAY = {errno.EISDIR, errno.ENOTDIR, errno.EEXIST}


def run(command: Callable[[], object], arguments: Sequence[str]) -> int:
    """Call the command and turn whatever ends it into an exit code and at most one sentence.

    `arguments` are shown where the sentence says how to go on.
    """
    previous = signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        command()
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        line = shlex.join(["cellar", *arguments])
        go_on = str(interrupt) or f"`{line}` continues from what is published and what it kept"
        _say(f"interrupted; the store is consistent, and {go_on}")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe has seen enough; without this the interpreter would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else OK
    except Exception as error:  # noqa: BLE001 - the outermost frame: every error becomes a sentence and a code
        return _fail(error, arguments)
    finally:
        signal.signal(signal.SIGTERM, previous)
    return OK


def _fail(error: Exception, arguments: Sequence[str]) -> int:
    from store.errors import CellarError

    if "--debug" in arguments:
        traceback.print_exception(error)
    if isinstance(error, CellarError):
        _say(str(error))
        return error.exit_code
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        place = f" for {error.filename}" if error.filename else ""
        _say(f"no space is left{place}; free some and run the same command again")
        return UNAVAILABLE
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        _say(f"{str(error.filename)[:120]}... is too long for a path; choose a shorter one")
        return BAD_INPUT
    if isinstance(error, OSError) and error.filename and error.errno in _NOT_ALLOWED:
        _say(f"{error.filename} may not be read or written ({error.strerror}); change it or the place")
        return UNAVAILABLE
    if isinstance(error, OSError) and error.filename and error.errno in _IN_THE_WAY:
        _say(f"{error.filename} is in the way ({error.strerror}); remove it, or choose another place")
        return BAD_INPUT
    _say(
        f"unexpected {type(error).__name__}: {_one_line(error)}; this is a bug: please report it with "
        "what the same command prints with --debug"
    )
    return BUG


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    """A polite kill ends a command as Ctrl-C does."""
    raise KeyboardInterrupt


def _say(sentence: str) -> None:
    from flows.formatting import printable

    # A sentence may quote a file or a column that anybody named.
    print(f"cellar: {printable(sentence)}", file=sys.stderr)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or "no message"
