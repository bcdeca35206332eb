"""Portable evaluations: tasks, selected evidence and core in one export, scored again anywhere."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.package.posed import PosedTasks, load_posed
    from tasks.package.reproduction import ConditionLoss, Reproduction, compare
    from tasks.package.step import TOLERANCE, is_package, run_package, write_package

__all__ = [
    "TOLERANCE",
    "ConditionLoss",
    "PosedTasks",
    "Reproduction",
    "compare",
    "is_package",
    "load_posed",
    "run_package",
    "write_package",
]

export_lazily(__name__)
