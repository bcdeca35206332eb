"""What the processes of runs import: what this process imports, and the user's own modules after all else."""

import os
import sys
from pathlib import Path

import flows
from flows.errors import ScheduleError

_PACKAGES = ("flows", "tasks", "store")
NO_WORKING_FOLDER = {"PYTHONSAFEPATH": "1"}
"""Variables that keep `python -m` from putting the working folder before everything that is installed."""


def import_variables() -> dict[str, str]:
    """Variables of a process that finds the same code as this one.

    Its working folder comes last: a module there is found, but a folder `store` or a file `random.py` hides
    nothing that is installed.
    """
    here, ours = Path.cwd(), str(_home())
    found = [entry for entry in sys.path if entry and Path(entry).resolve() != here]
    if ours not in found:
        found.insert(0, ours)
    return {**NO_WORKING_FOLDER, "PYTHONPATH": os.pathsep.join([*found, str(here)])}


def check_working_folder() -> None:
    """Refuse a working folder with a module that is called as a package of cellar.

    Prefect imports flows with the working folder before all else, so that it would be taken for that package.

    Raises:
        ScheduleError: there is such a module.
    """
    here = Path.cwd()
    if here.resolve() == _home():
        return
    for name in _PACKAGES:
        for module in (here / f"{name}.py", here / name / "__init__.py"):
            if module.exists():
                raise ScheduleError(
                    f"{module} hides the package {name!r} of cellar from the runs that start in {here}; "
                    "rename it, or choose another working folder"
                )


def _home() -> Path:
    """The folder with the packages of cellar: a checkout, or where it is installed."""
    return Path(flows.__file__).resolve().parents[1]
