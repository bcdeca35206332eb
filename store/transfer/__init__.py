"""Moving snapshots between stores and in and out of archives, checked to the last byte on the way.

`copy_snapshot` sends what another store lacks. `export_snapshot` writes one tar file or folder that opens as
a store. `check_archive` looks through one of unknown origin before anything of it is believed.
"""

from store.transfer.admit import check_archive
from store.transfer.check import CheckedExport
from store.transfer.choice import Choice
from store.transfer.copy import CopyReport, copy_snapshot
from store.transfer.export import ExportReport, export_snapshot
from store.transfer.sink import check_destination, check_folder_at, folder_at

__all__ = [
    "CheckedExport",
    "Choice",
    "CopyReport",
    "ExportReport",
    "check_archive",
    "check_destination",
    "check_folder_at",
    "copy_snapshot",
    "export_snapshot",
    "folder_at",
]
