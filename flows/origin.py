"""Who works where with which code: what commits of commands and flows alike record of their origin."""

import getpass
import os
import platform
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

_ROOT = Path(__file__).parents[1]
_CODE = ("store", "tasks", "flows", "pyproject.toml")
_GIT_TIMEOUT_S = 10.0


def origin() -> dict[str, str]:
    """The machine and the user, as a commit records them; nothing from the environment that may be secret."""
    return {"host": platform.node(), "user": user()}


def user() -> str:
    """The name of the user, or the number of one without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number without a name
        return str(os.getuid())


@cache
def code() -> dict[str, str]:
    """The `version` of the package and, of a checkout, its git `revision`, with `+modified` where it differs.

    Asked once in a process: what was imported is what runs.
    """
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    with suppress(PackageNotFoundError):
        found["version"] = version("cellar-lm")
    revision = revision_of(_ROOT)
    return found | ({"revision": revision} if revision else {})


def revision_of(root: Path) -> str:
    """The git commit that is checked out at `root`, "" if that is no checkout or there is no git."""
    if not (root / ".git").exists():  # a repository somewhere above, around an environment, is not ours
        return ""
    commit = _git(root, "rev-parse", "HEAD")
    if commit is None or commit.returncode:
        return ""
    changed = _git(root, "diff", "--quiet", "HEAD", "--", *_CODE)
    suffix = "+modified" if changed is None or changed.returncode else ""
    return commit.stdout.strip() + suffix


def _git(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str] | None":
    import subprocess  # every command loads this module

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(  # noqa: S603
            ["git", "-C", str(root), *arguments],  # noqa: S607
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
