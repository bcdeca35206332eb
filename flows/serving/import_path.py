"""What the processes of runs import: what this process imports, and the user's own modules after all else."""

import os
import sys
from pathlib import Path

import flows

NO_WORKING_FOLDER = {"PYTHONSAFEPATH": "1"}
"""Variables that keep `python -m` from putting the working folder before everything that is installed."""


def import_variables() -> dict[str, str]:
    """Variables of a process that finds the same code as this one.

    Its working folder comes last: a module there is found, but a folder `store` or a file `random.py` hides
    nothing that is installed.
    """
    here = Path.cwd()
    found = [entry for entry in sys.path if entry and Path(entry).resolve() != here]
    ours = str(Path(flows.__file__).resolve().parents[1])
    if ours not in found:
        found.insert(0, ours)
    return {**NO_WORKING_FOLDER, "PYTHONPATH": os.pathsep.join([*found, str(here)])}
