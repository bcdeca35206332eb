"""A process that copies a snapshot and kills itself before its k-th write to the destination.

    python -m tests.store.killed_copy SOURCE DESTINATION SNAPSHOT K

With K = -1 it runs to the end and prints the snapshot id and the number of writes it made.
"""

from __future__ import annotations

import sys

from store import Store
from store.backend import open_backend
from store.store import create_format
from store.transfer import copy_snapshot, parcel
from tests.store.killed_writer import Killer, deadly

WRITES = 19
"""Writes of a whole copy of the tests' snapshot: format, lease, six packs with a part each, index, log entry,
rows and head of the snapshot, log entry."""

if __name__ == "__main__":
    source, destination, snapshot, at = sys.argv[1:]
    parcel._PARALLEL = 1  # so that the k-th write is always the same
    killer = Killer(int(at), "before")
    backend = deadly(open_backend(destination), killer)
    create_format(backend)
    opened = Store.open(source)
    report = copy_snapshot(opened, opened.snapshot(snapshot), Store(backend))
    sys.stdout.write(f"{report.snapshot} {killer.count}\n")
