"""Replacement: one element's version is swapped in a snapshot, and exactly its tasks change."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.replacement.dependents import Change, changed, concerned, expected
    from tasks.replacement.edit import edit, editable, most_asked
    from tasks.replacement.params import ReplacementParams
    from tasks.replacement.step import evaluate_replacement
    from tasks.replacement.swap import find_versions

__all__ = [
    "Change",
    "ReplacementParams",
    "changed",
    "concerned",
    "edit",
    "editable",
    "evaluate_replacement",
    "expected",
    "find_versions",
    "most_asked",
]

export_lazily(__name__)
