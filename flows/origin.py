"""Who works where: what commits of commands and flows alike record of their origin."""

import getpass
import os
import platform


def origin() -> dict[str, str]:
    """The machine and the user, as a commit records them; nothing from the environment that may be secret."""
    return {"host": platform.node(), "user": user()}


def user() -> str:
    """The name of the user, or the number of one without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number without a name
        return str(os.getuid())
