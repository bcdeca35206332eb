"""Lineage: what an element or a snapshot was made from, and what was made with it, as recorded."""

from flows.lineage.elements import element_lineage
from flows.lineage.snapshots import snapshot_lineage
from flows.lineage.tree import tree_lines

__all__ = ["element_lineage", "snapshot_lineage", "tree_lines"]
